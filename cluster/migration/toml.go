package migration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// parseTOML reads the part of TOML that the file of an RDT daemon has: sections, and keys with
// a text, a number, true, false, or a list of them in one line. Everything else is an error.
func parseTOML(text string) (map[string]any, error) {
	all := map[string]any{}
	section, number := all, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		head, isSection := strings.CutPrefix(line, "[")
		key, value, isPair := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case isSection:
			name, rest, closed := strings.Cut(head, "]")
			if name = strings.TrimSpace(name); !closed || name == "" || strings.ContainsAny(name, `["'`) || !isComment(rest) {
				return nil, fmt.Errorf("line %d: want [section]", number)
			}
			section, _ = all[name].(map[string]any)
			if section == nil {
				section = map[string]any{}
				all[name] = section
			}
		case isPair:
			key = strings.TrimSpace(key)
			parsed, rest, err := parseValue(strings.TrimSpace(value), true)
			if err == nil && (key == "" || strings.ContainsAny(key, ` "'.`) || !isComment(rest)) {
				err = fmt.Errorf("%q, want key = value", message.Short(line, mostValue))
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			section[key] = parsed
		default:
			return nil, fmt.Errorf("line %d: want [section] or key = value", number)
		}
	}
	return all, nil
}

func isComment(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] == '#'
}

// parseValue reads a value, and returns what is after it.
func parseValue(text string, lists bool) (value any, rest string, err error) {
	quoted, _ := strconv.QuotedPrefix(text)
	switch {
	case strings.HasPrefix(text, `"`) && quoted != "":
		value, err = strconv.Unquote(quoted)
		return value, text[len(quoted):], err
	case strings.HasPrefix(text, "'") && strings.Count(text, "'") > 1:
		before, after, _ := strings.Cut(text[1:], "'")
		return before, after, nil
	case strings.HasPrefix(text, "[") && lists:
		list := []any{}
		for rest = strings.TrimSpace(text[1:]); !strings.HasPrefix(rest, "]"); {
			if value, rest, err = parseValue(rest, false); err != nil {
				return nil, "", err
			}
			list = append(list, value)
			rest = strings.TrimSpace(rest)
			if after, more := strings.CutPrefix(rest, ","); more {
				rest = strings.TrimSpace(after)
			} else if !strings.HasPrefix(rest, "]") {
				return nil, "", fmt.Errorf("%q, want a list in one line", message.Short(text, mostValue))
			}
		}
		return list, rest[1:], nil
	}
	word := text
	if end := strings.IndexAny(text, " \t,]#"); end >= 0 {
		word = text[:end]
	}
	rest = text[len(word):]
	if word == "true" || word == "false" {
		return word == "true", rest, nil
	}
	if number, err := strconv.ParseInt(word, 10, 64); err == nil {
		return number, rest, nil
	}
	if number, err := strconv.ParseFloat(word, 64); err == nil && number-number == 0 { // finite
		return number, rest, nil
	}
	return nil, "", fmt.Errorf("%q, want a text in quotes, a number, true, false, or a list of them", message.Short(text, mostValue))
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
