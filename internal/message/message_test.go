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
