package pin

import "testing"

func TestResctrlGroupOfATask(t *testing.T) {
	for text, want := range map[string]struct {
		group   string
		mounted bool
	}{
		"res:/\nmon:/\n":                        {"", true},
		"res:dra-numa.3\nmon:dra-numa.3/\n":     {"dra-numa.3", true},
		"res:/\nmon:mon_groups/claim-a\n":       {"", true},
		"res:\nmon:\n":                          {"", false},
		"res:a group\nmon:/\nres:second line\n": {"a group", true},
	} {
		if group, mounted, err := ResctrlGroup(text); group != want.group || mounted != want.mounted || err != nil {
			t.Errorf("%q: %q, %t, %v", text, group, mounted, err)
		}
	}
	if _, _, err := ResctrlGroup("garbage"); err == nil || err.Error() != `no line res: in "garbage"` {
		t.Errorf("error %v", err)
	}
}
