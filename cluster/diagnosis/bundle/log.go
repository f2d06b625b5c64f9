package bundle

import (
	"bytes"
	"regexp"
)

// klog's header of a message, and the messages with which client-go logs the body of a
// request or an answer (logBody in k8s.io/client-go/rest).
var (
	logHeader = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]+\] `)
	logBody   = regexp.MustCompile(`^"?(Request|Response) Body\b"?`)
)

// redactedLog omits bodies of requests and answers, which may have Secrets. The driver
// logs none, but older versions did. A log that begins within a message loses the rest
// of that message, because it may be the rest of a body.
func redactedLog(text []byte) []byte {
	var kept bytes.Buffer
	omit := bytes.HasPrefix(text, []byte("\t")) // klog indents the lines of a value
	if omit {
		kept.WriteString("(left out: the rest of an earlier message)\n")
	}
	for line := range bytes.Lines(text) {
		header := logHeader.Find(line)
		if header == nil {
			if !omit {
				kept.Write(line)
			}
			continue
		}
		body := logBody.Find(line[len(header):])
		if omit = body != nil; omit {
			line = append(append(bytes.Clone(header), body...), " (left out)\n"...)
		}
		kept.Write(line)
	}
	return kept.Bytes()
}
