package tuning

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
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
	data := sampleFirst().Encode()
	files.Golden(t, "testdata/first.json", string(data))
	if read, err := DecodeFirst(data); err != nil || !reflect.DeepEqual(read, sampleFirst()) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestFirstValuesThatAreTornOrOfAnotherBuild(t *testing.T) {
	data := sampleFirst().Encode()
	for n := range data {
		if _, err := DecodeFirst(data[:n]); !errors.Is(err, errFirstDamaged) {
			t.Errorf("of the first %d bytes: %v", n, err)
		}
		torn := bytes.Clone(data)
		torn[n] ^= 4
		if _, err := DecodeFirst(torn); !errors.Is(err, errFirstDamaged) && !errors.Is(err, ledger.ErrOtherBuild) {
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
		if _, err := DecodeFirst(changed); !errors.Is(err, ledger.ErrOtherBuild) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
	if _, err := DecodeFirst([]byte(files.Read(t, "../ledger/testdata/checkpoint.json"))); err == nil || !strings.Contains(err.Error(), `format "dra.numa/checkpoint", version 1, this build reads format "dra.numa/first", version 1`) {
		t.Errorf("of a checkpoint: error %v", err)
	}
}

// resealed returns the file with a changed state, and the correct checksum of it.
func resealed(data []byte, change func(state string) string) []byte {
	var file struct{ State json.RawMessage }
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	if change != nil {
		file.State = []byte(change(string(file.State)))
	}
	return formatOfFirst().Encode(file.State)
}

func FuzzDecodeFirst(f *testing.F) {
	f.Add(sampleFirst().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, resealed(data, nil)} {
			if decoded, err := DecodeFirst(data); err == nil && !bytes.Equal(decoded.Encode(), data) {
				t.Errorf("encode(decode(%q)) = %q", data, decoded.Encode())
			}
		}
	})
}

// CPUs that share a policy or a core with others have no default.
func TestOnlyWholePoliciesAndCoresHaveADefault(t *testing.T) {
	cores := []numa.Core{{CPUs: cpuset.New(0, 4)}, {CPUs: cpuset.New(1, 5)}, {CPUs: cpuset.New(2, 6)}, {CPUs: cpuset.New(3, 7)}}
	policies := []numa.FrequencyPolicy{{CPUs: cpuset.New(0, 1)}, {CPUs: cpuset.New(2)}, {CPUs: cpuset.New(6)}}
	for free, want := range map[cpuset.Set]cpuset.Set{
		cpuset.New(0, 1, 2, 3, 4, 5, 6, 7): cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
		cpuset.New(1, 2, 3, 4, 5, 6, 7):    cpuset.New(2, 3, 6, 7), // 0 takes 4 with it, and 1, and 1 takes 5
		cpuset.New(0, 1, 2, 3, 4, 5, 7):    cpuset.New(0, 1, 3, 4, 5, 7),
		{}:                                 {},
	} {
		if got := whole(free, cores, policies); got != want {
			t.Errorf("of %s are %s whole, want %s", free, got, want)
		}
	}
}

// The interrupts of a claim's PCI functions go to the CPUs that containers run on.
func TestOwnInterruptsAreThoseOfTheClaimsFunctions(t *testing.T) {
	const card = "0000:5e:00.0"
	power := sysfs.NewPowerHost(sysfs.Power{CPUs: 8})
	for number, address := range map[int]string{30: card, 31: card, 32: "0000:5f:00.0"} {
		power.Request(sysfs.Line{Number: number, Name: "card", Function: address})
	}
	zone := &ledger.ZoneShare{NUMANodes: []int{1}, CPUs: cpuset.New(4, 5), Partition: "root", IdleCPUs: cpuset.New(5), Performance: &ledger.Performance{}}
	grant := ledger.Grant{Shares: []ledger.Share{{Request: "cpus", Kind: zone}, {Request: "card", Kind: &ledger.FunctionShare{Address: card}}}}
	state := New(&Config{Interrupts: interrupts.New(power, power.Write)}, nil, nil)
	for interrupt, want := range map[string]interrupts.Demand{
		"own":  {CPUs: cpuset.New(4, 5), Handle: cpuset.New(4), Own: []int{30, 31}},
		"away": {CPUs: cpuset.New(4, 5)},
	} {
		zone.Performance.Asked.Interrupts = interrupt
		if got, asks, err := state.demand(grant); err != nil || !asks || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %t, %v, want %+v", interrupt, got, asks, err, want)
		}
	}
}
