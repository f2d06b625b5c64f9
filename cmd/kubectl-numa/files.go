package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// files reads a snapshot from files, folders and URLs; "-" means standard input. In a folder,
// it reads the YAML and JSON files at any depth, in the order of their names. It
// implements snapshot.Source.
type files []string

// extensions are the file name extensions that are read in a folder.
var extensions = [...]string{".yaml", ".yml", ".json"}

// addTo adds the flag that names the files to a command.
func (f *files) addTo(command *cobra.Command, usage string) {
	command.Flags().StringArrayVarP((*[]string)(f), "filename", "f", nil, usage)
	command.Flags().BoolP("recursive", "R", true, "read folders at any depth; kubectl needs this flag, and here it changes nothing")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json") // for completion in shells; the flag exists
}

func (f files) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	return f.read(ctx, &snapshot.Snapshot{})
}

// read adds the files to an empty snapshot, and returns it.
func (f files) read(ctx context.Context, s *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := f.each(ctx, s.Read); err != nil {
		return nil, err
	}
	return s, nil
}

// each calls use with the name and the text of each file.
func (f files) each(ctx context.Context, use func(name string, text io.Reader) error) error {
	return f.eachOf(ctx, extensions[:], use)
}

// eachOf is each with other name extensions of the files that are read in a folder.
func (f files) eachOf(ctx context.Context, extensions []string, use func(name string, text io.Reader) error) error {
	for _, path := range f {
		if path == "-" {
			if err := use("standard input", os.Stdin); err != nil {
				return err
			}
			continue
		}
		if address, is := parseURL(path); is {
			if err := useURL(ctx, address, use); err != nil {
				return err
			}
			continue
		}
		names, err := filesOf(path, extensions)
		if err != nil {
			return fmt.Errorf("--filename: %w", err)
		}
		for _, name := range names {
			if err := useFile(name, use); err != nil {
				return err
			}
		}
	}
	return nil
}

func useFile(name string, use func(name string, text io.Reader) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("--filename: %w", err)
	}
	defer file.Close()
	return use(name, file)
}

// filesOf returns the file itself, or the files of a folder.
func filesOf(path string, extensions []string) (names []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	// With the separator, the path may be a link to a folder.
	err = filepath.WalkDir(path+string(filepath.Separator), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(name))) {
			names = append(names, name)
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("folder %q has no %s files", path, strings.Join(extensions, ", "))
	}
	return names, err
}
