package migration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// parseTOML names the line that is wrong.
func parseTOML(text string) (map[string]any, error) {
	all := map[string]any{}
	err := toml.Unmarshal([]byte(text), &all)
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		err = fmt.Errorf("line %d: %w", line, err)
	}
	return all, err
}

// tomlSource returns the source of a TOML file. The daemon takes its keys in capitals or not;
// the source has them as the table does.
func tomlSource(name, text string) (Source, error) {
	parsed, err := parseTOML(text)
	if err != nil {
		return Source{}, err
	}
	names := map[string]string{} // by their small letters
	for at := range table {
		if at.kind == rmdFileKind {
			names[strings.ToLower(at.path)] = at.path
		}
	}
	s := Source{Kind: "TOML file", Name: name, fields: map[string]any{}}
	for _, section := range slices.Sorted(maps.Keys(parsed)) {
		known, is := names[strings.ToLower(section)]
		if !is {
			known = section
		}
		if slices.Contains([]string{osSection, infraSection, poolSection}, known) {
			s.Kind = rmdFileKind
		}
		keys, isSection := parsed[section].(map[string]any)
		if known == "database" || known == "openstack" {
			s.fields[known] = "(not shown: it may have passwords)"
			continue
		}
		if !isSection {
			s.fields[known] = parsed[section]
			continue
		}
		fields := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			path := known + "." + key
			if asKnown, is := names[strings.ToLower(path)]; is {
				path = asKnown
			}
			fields[strings.TrimPrefix(path, known+".")] = keys[key]
		}
		s.fields[known] = fields
	}
	return s, nil
}
