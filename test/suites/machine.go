package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// machine answers what a plan asks, with the programs that know it.
type machine struct {
	ctx    context.Context
	folder string
	flags  func() ([]string, error)
	chart  func() (string, error)
}

func newMachine(ctx context.Context, root string) *machine {
	m := &machine{ctx: ctx, folder: root}
	m.flags = sync.OnceValues(m.readFlags)
	m.chart = sync.OnceValues(func() (string, error) {
		static, err := m.static()
		if err != nil {
			return "", err
		}
		return m.answer(static, "go", "tool", "-modfile="+root+"/tools/go.mod", "-n", "helm")
	})
	return m
}

func (m *machine) root() string              { return m.folder }
func (m *machine) static() ([]string, error) { return m.flags() }
func (m *machine) helm() (string, error)     { return m.chart() }

// readFlags returns what the Makefile calls STATIC: modules are compiled once for all.
func (m *machine) readFlags() ([]string, error) {
	flags, err := m.answer(nil, "go", "env", "GOFLAGS")
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(strings.Fields(flags), func(flag string) bool { return flag == "-trimpath" })
	return []string{"CGO_ENABLED=0", "GOFLAGS=" + strings.Join(append(list, "-trimpath"), " ")}, nil
}

func (m *machine) ofCluster(what, name string) (string, error) {
	return m.answer(nil, filepath.Join(m.folder, cluster), "path", "-name", name, what)
}

// answer returns what a program prints.
func (m *machine) answer(env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.WithoutCancel(m.ctx), args[0], args[1:]...)
	cmd.Dir, cmd.Env = m.folder, slices.Concat(os.Environ(), env)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command{args: args}, err, complaints.Bytes())
	}
	return strings.TrimSpace(string(output)), nil
}

// inMemory returns a folder for temporary files in memory, where 4 GiB are free and programs
// may be run from there: tests write thousands of small files, for which a disk took up to
// 20 times as long.
func inMemory() (folder string, remove func(), err error) {
	const wanted = 4 << 30
	if folder, err = os.MkdirTemp("/dev/shm", "dra-numa."); err == nil {
		var fs syscall.Statfs_t
		if err = syscall.Statfs(folder, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) < wanted {
			err = errors.New("too little is free")
		}
		if err == nil {
			err = runsPrograms(folder)
		}
	}
	if err != nil {
		if folder != "" {
			os.RemoveAll(folder)
		}
		folder, err = os.MkdirTemp("", "dra-numa.")
	}
	return folder, func() { os.RemoveAll(folder) }, err
}

// runsPrograms returns an error if no program can be run from a folder.
func runsPrograms(folder string) error {
	const program = "#!/bin/sh\n"
	path := filepath.Join(folder, "true")
	if err := os.WriteFile(path, []byte(program), 0o755); err != nil {
		return err
	}
	defer os.Remove(path)
	return exec.Command(path).Run()
}
