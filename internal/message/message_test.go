package message

import "testing"

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"one line":                  "one line",
		" two\n\tlines, \r\n again": "two lines, again",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestFirst(t *testing.T) {
	names := []string{"a", "b", "c"}
	for most, want := range map[int]string{1: "a and 2 more", 2: "a, b and 1 more", 3: "a, b, c", 4: "a, b, c"} {
		if got := First(names, most); got != want {
			t.Errorf("First of %d is %q, want %q", most, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"just as long as it may be": "just as long as it may be",
		"this one is a bit too long, so it has a gap": "this one i ...  has a gap",
		"ööööööööööööööö":                             "ööööö ... ööööö",
		"aööööööööööööö":                              "aöööö ... ööööö",
	} {
		if got := Short(text, 25); got != want {
			t.Errorf("Short(%q) = %q, want %q", text, got, want)
		}
	}
}
