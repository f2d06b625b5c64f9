package driver

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/golden"
)

func sampleFirst() First {
	return First{BootID: "boot-1", Interrupts: interrupts.First{
		Default: cpuset.New(0, 1, 2, 3), Affinities: []interrupts.Affinity{{CPUs: cpuset.New(0, 1), Interrupts: []int{0, 24, 25}}},
	}, Uncore: []uncore.Held{
		{ID: uncore.ID{Package: 0, Die: 1}, FirstKHz: 800_000, WasKHz: 1_200_000, WantKHz: 2_000_000},
		{ID: uncore.ID{Package: 1, Die: 0}, FirstKHz: 800_000, WantKHz: 2_000_000, GotKHz: 1_900_000},
	}, Defaults: []Default{{
		Asked: deviceclasses.PerformanceSettings{MaxFrequency: "base"}, Applied: true,
		Changes: cpufreq.Changes{Frequencies: []cpufreq.Change{{
			Policies: cpuset.New(0, 1), Driver: "intel_pstate", Before: cpufreq.Values{Governor: "powersave", MinKHz: 900_000, MaxKHz: 3_600_000},
			Want: cpufreq.Values{MaxKHz: 2_400_000}, Got: cpufreq.Values{MaxKHz: 2_400_000},
		}}},
	}}}
}

// The file has exactly this text; see TestCheckpointRoundTrips.
func TestFirstValuesRoundTrip(t *testing.T) {
	data := encodeFirst(sampleFirst())
	golden.Check(t, "testdata/first.json", string(data))
	if read, err := DecodeFirst(data); err != nil || !reflect.DeepEqual(read, sampleFirst()) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestFirstValuesThatAreTornOrOfAnotherBuild(t *testing.T) {
	data := encodeFirst(sampleFirst())
	for n := range data {
		if _, err := DecodeFirst(data[:n]); !errors.Is(err, errFirstDamaged) {
			t.Errorf("of the first %d bytes: %v", n, err)
		}
		torn := bytes.Clone(data)
		torn[n] ^= 4
		if _, err := DecodeFirst(torn); !errors.Is(err, errFirstDamaged) && !errors.Is(err, ErrOtherBuild) {
			t.Errorf("byte %d %q changed to %q goes unnoticed", n, data[n], torn[n])
		}
	}
	for name, row := range map[string]struct{ old, new, want string }{
		"bad uncore":   {`"firstKHz":800000`, `"firstKHz":-1`, "written by another build: uncore[0]: 2000000 kHz of die 1 of package 0, and -1 kHz first"},
		"bad default":  {`{"maxFrequency":"base"`, `{"maxFrequency":"fast"`, `defaults[0].maxFrequency: "fast", want a frequency`},
		"a new field":  {`"bootID"`, `"new":1,"bootID"`, `unknown field "new"`},
		"another form": {`"bootID":`, `"bootID": `, "not in the form that this build writes"},
	} {
		changed := resealed(data, func(state string) string { return strings.Replace(state, row.old, row.new, 1) })
		if _, err := DecodeFirst(changed); !errors.Is(err, ErrOtherBuild) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
	if _, err := DecodeFirst(checkpointBytes(t)); err == nil || !strings.Contains(err.Error(), `format "dra.numa/checkpoint", version 1, this build reads format "dra.numa/first", version 1`) {
		t.Errorf("of a checkpoint: error %v", err)
	}
}

func FuzzDecodeFirst(f *testing.F) {
	f.Add(encodeFirst(sampleFirst()))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, resealed(data, nil)} {
			if decoded, err := DecodeFirst(data); err == nil && !bytes.Equal(encodeFirst(decoded), data) {
				t.Errorf("encode(decode(%q)) = %q", data, encodeFirst(decoded))
			}
		}
	})
}

// changedNode is a node on which a default of the NodeConfig and a claim have changed everything
// that can be. first is what it had before.
func changedNode(t *testing.T) (n *powerNode, first map[string]string) {
	t.Helper()
	n = newDieNode(t)
	first = n.power.Values()
	mustPrepare(t, n.start(slow(), false), wantsAll())
	return n, first
}

func wantsAll() *resourceapi.ResourceClaim {
	return tunedClaim(claim("a", result("r", "numa-1", 2)), `"minUncoreFrequency": "2GHz", "interrupts": "away", "minFrequency": "min"`)
}

// docs/runbooks.md says to delete the checkpoint. The CDI specs still have the grants, unless
// somebody has deleted these, too: then the frequencies of the claim are unknown.
func TestTheRemedyForADamagedCheckpointGivesTheHostBack(t *testing.T) {
	for _, specs := range []bool{true, false} {
		n, first := changedNode(t)
		n.remove(CheckpointName)
		if !specs {
			n.remove(specName("uid-a"))
		}
		driver := n.start(slow(), false)
		if driver.FirstUnknown() != nil {
			t.Errorf("with specs: %t: %v", specs, driver.FirstUnknown())
		}
		unprepare(t, driver, "uid-a")
		driver = n.start(deviceclasses.PerformanceSettings{}, false)
		if n.expect(first); t.Failed() {
			t.Fatalf("with specs: %t", specs)
		}
		assertConsistent(t, n.disk, driver)
	}
}

// A daemon that does not know what the host had first says so once, and takes what the kernel
// began with.
func TestFirstValuesThatAreLostAreThoseOfTheKernel(t *testing.T) {
	good := encodeFirst(sampleFirst())
	for name, row := range map[string]struct{ text, want string }{
		"missing":          {"", FirstName + ": it is missing"},
		"torn":             {string(good[:100]), FirstName + ": damaged first values: unexpected end of JSON input"},
		"of another build": {strings.Replace(string(good), `"version":1`, `"version":2`, 1), FirstName + ": written by another build: format"},
		"of another boot":  {string(encodeFirst(First{BootID: "boot-0"})), FirstName + ": it is of boot boot-0"},
	} {
		n, first := changedNode(t)
		n.remove(FirstName)
		if row.text != "" {
			n.write(FirstName, row.text)
		}
		driver := n.start(slow(), false)
		if err := driver.FirstUnknown(); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: unknown because of %v, want %q", name, err, row.want)
		}
		assertConsistent(t, n.disk, driver)
		unprepare(t, driver, "uid-a")
		driver = n.start(deviceclasses.PerformanceSettings{}, false)
		if err := driver.FirstUnknown(); err != nil {
			t.Errorf("%s: said again: %v", name, err)
		}
		left := maps.Clone(first)
		for file, text := range n.power.Values() { // it is not known what it was
			if filepath.Base(file) == "energy_performance_preference" {
				left[file] = text
			}
		}
		if n.expect(left); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A boot in which nothing was changed has no first values to lose.
func TestFirstValuesOfAnotherBootAreNotMissed(t *testing.T) {
	n, _ := changedNode(t)
	n.write(FirstName, "{")
	n.boot, n.power = "boot-2", newDieNode(t).power
	first := n.power.Values()
	driver := n.start(slow(), false)
	if err := driver.FirstUnknown(); err != nil {
		t.Error(err)
	}
	mustPrepare(t, driver, wantsAll())
	unprepare(t, driver, "uid-a")
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(first)
}

// The daemon dies before or after any write, to the kernel or to one of its two files. The
// next one goes on, and what the host had first is not lost.
func TestCrashBetweenTheTwoFilesHeals(t *testing.T) {
	for what, row := range map[string]struct {
		change func(n *powerNode)  // before the daemon starts
		do     func(*Driver) error // then
	}{
		"prepare": {func(n *powerNode) { unprepare(n.t, n.start(slow(), false), "uid-a") }, func(d *Driver) error {
			_, _, err := d.Prepare(wantsAll(), nil)
			return err
		}},
		"unprepare":     {func(*powerNode) {}, func(d *Driver) error { return d.Unprepare("uid-a") }},
		"no checkpoint": {func(n *powerNode) { n.remove(CheckpointName) }, nil},
		"no claim":      {func(n *powerNode) { n.remove(CheckpointName); n.remove(specName("uid-a")) }, nil},
	} {
		for last := 0; ; last++ {
			n, first := changedNode(t)
			row.change(n)
			n.power.Settle()
			config, left := n.dying(last)
			config.Tuning.Default = slow()
			driver, err := n.tryRead(config)
			if err != nil {
				t.Fatal(err)
			}
			replace := driver.replace
			driver.replace = func(name string, text []byte) error {
				if *left--; *left < 0 {
					return errCrash
				}
				return replace(name, text)
			}
			if _, err = driver.Recover(nil, nil); err == nil && row.do != nil {
				err = row.do(driver)
			}
			driver = n.start(slow(), false)
			if driver.FirstUnknown() != nil {
				t.Error(driver.FirstUnknown())
			}
			assertConsistent(t, n.disk, driver)
			if what == "prepare" {
				mustPrepare(t, driver, wantsAll())
				n.expectUncore("prepared again", 800, 800, 2000, 800)
				assertConsistent(t, n.disk, driver)
			}
			unprepare(t, driver, "uid-a")
			driver = n.start(deviceclasses.PerformanceSettings{}, false)
			assertConsistent(t, n.disk, driver)
			if n.expect(first); t.Failed() {
				t.Fatalf("%s after %d writes", what, last)
			}
			if err == nil && *left >= 0 {
				break
			}
		}
	}
}
