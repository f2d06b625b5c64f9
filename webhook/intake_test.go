package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// trickle is a body that arrives in parts, each a pause after the one before.
type trickle struct {
	part  []byte
	parts int
	pause time.Duration
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.parts == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.pause)
	b.parts--
	return copy(p, b.part), nil
}

// answerWith posts a body and returns the answer.
func answerWith(handler http.Handler, body io.Reader) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/", body)
	request.ContentLength = -1
	handler.ServeHTTP(recorder, request)
	return recorder
}

// What arrives takes no room from what has arrived.
func TestBodiesArriveBeforeTheyTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newReviewLimits()
		handler := limits.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range smallReviews + 1 {
			go answerWith(handler, &trickle{[]byte("x"), 9, 100 * time.Millisecond})
			go answerWith(handler, &trickle{make([]byte, 8<<10), 9, 100 * time.Millisecond})
		}
		time.Sleep(500 * time.Millisecond)
		for _, size := range []int{10, maxReviewBytes} {
			begin := time.Now()
			if answer := answerWith(handler, bytes.NewReader(make([]byte, size))); answer.Code != http.StatusOK || time.Since(begin) > 0 {
				t.Errorf("a body of %d bytes: %d %s after %s", size, answer.Code, answer.Body, time.Since(begin))
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if limits.intake.used != 0 || len(limits.intake.bodies) != 0 {
			t.Errorf("%d bytes of %d bodies are left", limits.intake.used, len(limits.intake.bodies))
		}
	})
}

// All bodies together have a bounded memory. What has taken longest loses it, whether it
// still arrives or waits for room.
func TestTheSlowestBodyGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits, open := oneEach(), make(chan struct{})
		limits.intake.most = 3 * maxReviewBytes
		handler := limits.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-open }))
		codes := make([]string, 6)
		for i, body := range []io.Reader{
			bytes.NewReader(make([]byte, maxReviewBytes)),               // has the room
			&trickle{make([]byte, 128<<10), 20, 100 * time.Millisecond}, // arrives
			bytes.NewReader(make([]byte, maxReviewBytes)),               // waits
			bytes.NewReader(make([]byte, maxReviewBytes-firstBytes)),    // waits
			bytes.NewReader(make([]byte, maxReviewBytes)),               // waits
			bytes.NewReader(make([]byte, 10)),                           // waits for nothing
		} {
			go func() {
				answer := answerWith(handler, body)
				codes[i] = fmt.Sprint(answer.Code, " ", strings.TrimSpace(answer.Body.String()))
			}()
			time.Sleep(300 * time.Millisecond)
			synctest.Wait()
			if used := limits.intake.used; used > limits.intake.most {
				t.Errorf("%d bytes are used", used)
			}
		}
		close(open)
		time.Sleep(ReviewTimeout)
		synctest.Wait()
		const slowest = "too much else arrives, and this one has taken longest"
		want := []string{"200 ", "503 read review: " + slowest, "503 review: " + slowest, "200 ", "200 ", "200 "}
		for i := range want {
			if codes[i] != want[i] {
				t.Errorf("body %d: %q, want %q", i, codes[i], want[i])
			}
		}
		if limits.intake.used != 0 {
			t.Errorf("%d bytes are left", limits.intake.used)
		}
	})
}

// startServer serves a handler as the webhook does. In a test of synctest, time stands still
// while it works.
func startServer(t *testing.T, handler http.Handler) *bufconn.Listener {
	t.Helper()
	certificate := pair(t)
	listener := bufconn.Listen(256 << 10)
	server := newServer(handler, Options{Certificate: func() (*tls.Certificate, error) { return certificate, nil }})
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener
}

// connect returns a connection with a protocol: h2 or http/1.1.
func connect(t *testing.T, dial func(context.Context) (net.Conn, error), protocol string) *tls.Conn {
	t.Helper()
	plain, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	connection := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return connection
}

// More requests than there is room for promise a body and send half of it, as any pod of the
// cluster can. Others are answered at once, and those are told after a second that they are
// late.
func TestHalfSentReviewsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startServer(t, handlerOf(t, cluster(t, nil)))
		var half []*tls.Conn
		for i := range smallReviews + 8 {
			connection := connect(t, server.DialContext, "http/1.1")
			size := []int{1000, largeReviewBytes + 1000}[i%2]
			if _, err := fmt.Fprintf(connection, "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat(" ", size/2)); err != nil {
				t.Fatal(err)
			}
			half = append(half, connection)
		}
		begin := time.Now()
		for _, http2 := range []bool{false, true} {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return server.DialContext(ctx) }
			client := &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2}}
			for _, path := range []string{"/validate", "/validate"} { // the connection is used again
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://webhook"+path, bytes.NewReader(reviewOf(t, "ResourceClaim", goodClaim, "")))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor == 2 != http2 {
					t.Errorf("%s, %v, over %s", answer.Status, err, answer.Proto)
				}
				_ = answer.Body.Close()
			}
			client.CloseIdleConnections()
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("good reviews waited %s", waited)
		}
		for i, connection := range half {
			text, err := io.ReadAll(connection)
			if !strings.HasPrefix(string(text), "HTTP/1.1 408 ") {
				t.Errorf("half-sent review %d: %q, %v", i, text, err)
			}
		}
		if waited := time.Since(begin); waited > bodyTimeout+time.Second {
			t.Errorf("half-sent reviews were told after %s", waited)
		}
	})
}

// The first frame of the server says how many streams a connection can have (RFC 9113,
// section 6.5).
func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	const settings, maxConcurrentStreams, initialWindow = 4, 3, 4
	connection := connect(t, startServer(t, http.NotFoundHandler()).DialContext, "h2")
	if _, err := io.WriteString(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 9)
	if _, err := io.ReadFull(connection, header); err != nil || header[3] != settings {
		t.Fatalf("frame %v, %v, want the settings", header, err)
	}
	list := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
	if _, err := io.ReadFull(connection, list); err != nil {
		t.Fatal(err)
	}
	got := map[uint16]uint32{}
	for ; len(list) >= 6; list = list[6:] {
		got[binary.BigEndian.Uint16(list)] = binary.BigEndian.Uint32(list[2:])
	}
	if got[maxConcurrentStreams] != 64 || got[initialWindow] != 256<<10 {
		t.Errorf("settings %v", got)
	}
}
