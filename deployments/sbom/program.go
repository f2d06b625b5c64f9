package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// program is an executable, and what the linker says of it.
type program struct {
	name     string // such as dra-numa
	platform string // such as linux/arm64
	sha256   string // of the file
	info     *debug.BuildInfo
	compiler string // of C, as it names itself; empty if there is no C in it
}

// readProgram reads a file that Go's linker wrote.
func readProgram(path string) (program, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("read build information of %s: %w", path, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return program{}, err
	}
	sum := sha256.Sum256(content)
	return program{
		name:     filepath.Base(path),
		platform: setting(info, "GOOS") + "/" + setting(info, "GOARCH"),
		sha256:   hex.EncodeToString(sum[:]),
		info:     info,
		compiler: compiler(content),
	}, nil
}

// compiler returns what compilers of C and the authors of the C library have left in an
// ELF program: GCC: (Debian 12.2.0-14) 12.2.0.
func compiler(content []byte) string {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return "" // for another platform than Linux
	}
	section := file.Section(".comment")
	if section == nil {
		return ""
	}
	text, err := section.Data()
	if err != nil {
		return ""
	}
	names := strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })
	return strings.Join(slices.Compact(names), ", ")
}

// setting returns a setting of the build, "" if there is none.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// linked returns the module that is in a program in place of the required one.
func linked(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}
