package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// asProgram makes the test binary run as the program.
const asProgram = "KUBECTL_NUMA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){program: main})
}

// The scripts run the program as a shell does: with its streams, its exit codes and the
// environment of a user who has no kubeconfig. Each is about one thing that people do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		UpdateScripts: flag.Lookup("update").Value.String() == "true",
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			return os.CopyFS(filepath.Join(env.WorkDir, "classes"), os.DirFS("../../deviceclasses"))
		},
	})
}

// exits runs a program that must have an exit code: exits CODE PROGRAM ARGUMENTS.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("want exits CODE PROGRAM ARGUMENTS")
	}
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// Each command has a script that runs it.
func TestEveryCommandHasAScript(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, script := range scripts {
		for line := range strings.Lines(testfiles.Read(t, script)) {
			if _, args, is := strings.Cut(line, " "+program+" "); is {
				run = append(run, strings.Fields(args)[0])
			}
		}
	}
	eachCommand(func(command *cobra.Command) {
		if name := strings.Fields(pathOf(command))[0]; !slices.Contains(run, name) {
			t.Errorf("no script runs %s", name)
		}
	})
}
