// Command release writes the files of a release that are not programs or images: archives of
// programs with the licences of what is in them, the chart as a package for Helm, the manifest
// of the plugin for krew, and a list of checksums. The same input gives the same bytes, whatever the times and modes of the files are.
// It builds and publishes nothing.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
	"github.com/dra-driver-numa/dra-driver-numa/deployments/licenses"
)

const usage = `usage: release archive FILE.tar.gz NAME=FILE…   (a program has the mode 755: NAME=x:FILE)
       release licenses FILE PROGRAM…
       release chart FOLDER CHART vMAJOR.MINOR.PATCH [REGISTRY]
       release krew FOLDER TEMPLATE VERSION
       release sums FOLDER`

// errUsage marks an error in how the command was called: exit status 2.
var errUsage = errors.New(usage)

func main() {
	err := run(context.Background(), os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "release: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 2 && args[0] == "archive":
		return writeArchive(ctx, args[1], args[2:])
	case len(args) > 2 && args[0] == "licenses":
		texts, err := licenses.Of(ctx, args[2:]...)
		if err != nil {
			return err
		}
		return archive.Replace(args[1], texts)
	case len(args) == 4 && args[0] == "chart":
		return writeChart(args[1], args[2], args[3], "")
	case len(args) == 5 && args[0] == "chart":
		return writeChart(args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "krew":
		return writeManifest(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "sums":
		return writeSums(args[1])
	default:
		return errUsage
	}
}

// writeArchive writes the files of arguments NAME=FILE and NAME=x:FILE into an archive, with the
// licences of what is in the programs.
func writeArchive(ctx context.Context, out string, args []string) error {
	var files []archive.File
	var programs []string
	for _, arg := range args {
		name, source, found := strings.Cut(arg, "=")
		source, program := strings.CutPrefix(source, "x:")
		if !found || name == "" || source == "" {
			return fmt.Errorf("%q: want NAME=FILE or NAME=x:FILE\n%w", arg, errUsage)
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		file := archive.File{Name: name, Mode: 0o644, Content: content}
		if program {
			file.Mode = 0o755
			programs = append(programs, source)
		}
		files = append(files, file)
	}
	if len(programs) > 0 {
		texts, err := licenses.Of(ctx, programs...)
		if err != nil {
			return err
		}
		files = append(files, archive.File{Name: licenses.Name, Mode: 0o644, Content: texts})
	}
	content, err := archive.Compress(files)
	if err != nil {
		return err
	}
	return archive.Replace(out, content)
}

// sumsName is the name of the list of checksums, in the format of sha256sum.
const sumsName = "SHA256SUMS"

// writeSums writes the checksums of all other files of the folder.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder) // in the order of names
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsName {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return archive.Replace(filepath.Join(folder, sumsName), []byte(text.String()))
}
