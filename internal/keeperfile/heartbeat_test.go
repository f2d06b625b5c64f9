package keeperfile

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := Beat{At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Repairs: map[string]uint64{"partition": 3}, Releases: 7, Unrepaired: 1}
	got, err := ReadBeat(fstest.MapFS{BeatName: {Data: want.Encode()}})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestKeeperThatIsSilent(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(at time.Time) fstest.MapFS { return fstest.MapFS{BeatName: {Data: Beat{At: at}.Encode()}} }
	for name, row := range map[string]struct {
		dir  fstest.MapFS
		want string
	}{
		"just started":   {fstest.MapFS{}, "the keeper has not looked at the cgroups of claims yet"},
		"at work":        {at(now.Add(-BeatPeriod)), ""},
		"waiting":        {at(now.Add(-beatLasts)), ""},
		"stuck":          {at(now.Add(-beatLasts - 5*time.Second)), "the keeper has not looked at the cgroups of claims for 50s"},
		"clock set back": {at(now.Add(time.Hour)), ""},
		"of a newer one": {fstest.MapFS{BeatName: {Data: []byte(`{"at":"2026-03-01T12:00:00Z","releases":0,"unrepaired":0,"more":[1]}`)}}, ""},
		"torn":           {fstest.MapFS{BeatName: {Data: []byte(`{"at":`)}}, "the keeper's heartbeat cannot be read: read keeper.json: "},
		"too long":       {fstest.MapFS{BeatName: {Data: append([]byte("{"), make([]byte, 2*beatBytes)...)}}, "the keeper's heartbeat cannot be read: read keeper.json: "},
	} {
		b, err := ReadBeat(row.dir)
		if got := Silent(b, err, now); !strings.HasPrefix(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
