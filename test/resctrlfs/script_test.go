package resctrlfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// system is a mounted resctrl filesystem, with the CPUs and tasks that it is about: the
// kernel's, or the fake.
type system interface {
	fs.FS
	Mkdir(name string) error
	Rmdir(name string) error
	Rename(from, to string) error
	Write(name, text string) error

	setOnline(cpu int, online bool) error
	start() (pid int)
	end(pid int)
	groups(pid int) string // cpu_resctrl_groups
	settle()               // until RMIDs are out of limbo
}

// The files in testdata/scripts have an operation in each line:
//
//	mkdir NAME, rmdir NAME, mv FROM TO
//	write FILE TEXT      with a newline after it, unless it is quoted as in Go
//	read FILE, list FOLDER
//	count FILE           reads a counter; any number is as good as another
//	fill PREFIX          makes folders PREFIX0, PREFIX1 and so on until one is refused
//	offline CPU, online CPU
//	start TASK, end TASK, groups TASK
//	settle               waits until RMIDs are out of limbo
//
// {t} is the pid of task t, {x*9} is nine times the letter x, and L3:*=f is the same mask
// for every cache. A script with the line "caches 2" needs that many.
type script struct {
	name   string
	caches int
	lines  []string
}

func readScripts(t *testing.T) (list []script) {
	t.Helper()
	names, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := script{name: strings.TrimSuffix(filepath.Base(name), ".txt"), caches: 1}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if needs, found := strings.CutPrefix(line, "caches "); found {
				s.caches, _ = strconv.Atoi(needs)
				continue
			}
			s.lines = append(s.lines, line)
		}
		list = append(list, s)
	}
	return list
}

// answers runs the scripts that suit a machine, each on a system that was just mounted,
// and returns what was done and answered.
func answers(t *testing.T, caches int, mount func() system) string {
	t.Helper()
	var all strings.Builder
	for _, s := range readScripts(t) {
		if s.caches > caches {
			continue
		}
		t.Log(s.name) // a virtual machine may take minutes for one
		r := runner{system: mount(), t: t, caches: caches, tasks: map[string]int{}}
		fmt.Fprintf(&all, "== %s\n", s.name)
		for _, line := range s.lines {
			if strings.HasPrefix(line, "#") {
				fmt.Fprintln(&all, line)
				continue
			}
			fmt.Fprintf(&all, "$ %s\n%s", line, r.do(line))
		}
		for _, pid := range r.tasks {
			r.end(pid)
		}
	}
	return all.String()
}

type runner struct {
	system
	t      *testing.T
	caches int
	tasks  map[string]int
}

// do does what a line says, and returns the answer in one or more lines.
func (r *runner) do(line string) string {
	r.t.Helper()
	call, rest, _ := strings.Cut(line, " ")
	switch call {
	case "mkdir":
		return r.changed(r.Mkdir(r.text(rest)))
	case "rmdir":
		return r.changed(r.Rmdir(r.text(rest)))
	case "mv":
		from, to, _ := strings.Cut(rest, " ")
		return r.changed(r.Rename(r.text(from), r.text(to)))
	case "write":
		name, text, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(text, `"`) {
			text = strconv.Quote(text + "\n")
		}
		return r.changed(r.Write(name, r.text(text)))
	case "fill":
		return r.fill(rest)
	case "read", "count":
		text, err := fs.ReadFile(r.system, rest)
		if err != nil {
			return name(err) + "\n"
		}
		if _, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && call == "count" {
			return "a number\n"
		}
		return r.lines(string(text))
	case "list":
		return r.listed(rest)
	case "offline", "online":
		cpu, err := strconv.Atoi(rest)
		if err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		return name(r.setOnline(cpu, call == "online")) + "\n"
	case "start":
		r.tasks[rest] = r.start()
		return ""
	case "end":
		r.end(r.tasks[rest])
		return ""
	case "groups":
		return r.lines(r.groups(r.tasks[rest]))
	case "settle":
		r.settle()
		return ""
	}
	r.t.Fatalf("unknown operation %q", line)
	return ""
}

// changed is the answer to a change: the error, and what last_cmd_status says unless
// that is "ok".
func (r *runner) changed(err error) string {
	r.t.Helper()
	status, readErr := fs.ReadFile(r.system, "info/last_cmd_status")
	if readErr != nil {
		r.t.Fatal(readErr)
	}
	answer := name(err) + "\n"
	if string(status) != "ok\n" {
		answer += r.lines(string(status))
	}
	return answer
}

func (r *runner) fill(prefix string) string {
	r.t.Helper()
	const most = 1000
	for n := range most {
		if err := r.Mkdir(prefix + strconv.Itoa(n)); err != nil {
			return fmt.Sprintf("after %d: %s", n, r.changed(err))
		}
	}
	r.t.Fatalf("%d folders %s were made", most, prefix)
	return ""
}

func (r *runner) listed(folder string) string {
	entries, err := fs.ReadDir(r.system, folder)
	if err != nil {
		return name(err) + "\n"
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name()+"/")
		} else {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return r.lines(strings.Join(names, " ") + "\n")
}

var (
	repeated = regexp.MustCompile(`\{(.)\*(\d+)\}`)
	ofEach   = regexp.MustCompile(`\*=(\w+)`)
)

// text resolves what stands for something else.
func (r *runner) text(text string) string {
	r.t.Helper()
	for task, pid := range r.tasks {
		text = strings.ReplaceAll(text, "{"+task+"}", strconv.Itoa(pid))
	}
	text = repeated.ReplaceAllStringFunc(text, func(match string) string {
		parts := repeated.FindStringSubmatch(match)
		count, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], count)
	})
	text = ofEach.ReplaceAllStringFunc(text, func(match string) string {
		var each []string
		for id := range r.caches {
			each = append(each, strconv.Itoa(id)+match[1:])
		}
		return strings.Join(each, ";")
	})
	if strings.HasPrefix(text, `"`) {
		unquoted, err := strconv.Unquote(text)
		if err != nil {
			r.t.Fatalf("text %s: %v", text, err)
		}
		return unquoted
	}
	return text
}

// lines indents what was read. Pids are the names of tasks again: a line has one alone, or
// it is about tasks.
func (r *runner) lines(text string) string {
	var answer strings.Builder
	for line := range strings.Lines(text) {
		for task, pid := range r.tasks {
			if strings.TrimSpace(line) == strconv.Itoa(pid) || strings.Contains(strings.ToLower(line), "task") {
				line = regexp.MustCompile(fmt.Sprintf(`\b%d\b`, pid)).ReplaceAllString(line, "{"+task+"}")
			}
		}
		if !strings.HasSuffix(line, "\n") {
			line += " (and no newline)\n"
		}
		answer.WriteString("    " + line)
	}
	return answer.String()
}

// name is that of an error of a system call.
func name(err error) string {
	if err == nil {
		return "ok"
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		return err.Error()
	}
	return unix.ErrnoName(number)
}

// path of the answers of a kernel on a machine.
func recording(kernel, machine string) string {
	return path.Join("testdata", "linux-"+kernel+"-"+machine+".txt")
}
