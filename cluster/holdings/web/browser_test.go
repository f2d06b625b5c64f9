package web

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// browser is a headless Chromium, controlled through a pipe with its DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol).
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	number  int
	session string
}

// chromiums are names of the program.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome"}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range chromiums {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skipf("no browser: none of %s is in the PATH", strings.Join(chromiums, ", "))
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	command.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the flag has it
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, in: ourOut, out: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		_, _ = ourOut.WriteString(`{"id":0,"method":"Browser.close"}` + "\x00")
		ourOut.Close()
		stuck := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		stuck.Stop()
		ourIn.Close()
		endGroup(command.Process.Pid)
	})
	_ = ourIn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	return b
}

// endGroup ends the processes that are left of a group, because they write to a folder
// that is removed next. It waits at most a second for a process that no parent reaps.
func endGroup(group int) {
	for range 100 {
		if err := syscall.Kill(-group, syscall.SIGKILL); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// call sends a command and waits for its answer. It ignores events.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.number++
	message := map[string]any{"id": b.number, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	for err == nil {
		if text, err = b.out.ReadBytes(0); err != nil {
			break
		}
		var answer struct {
			ID     int
			Error  json.RawMessage
			Result json.RawMessage
		}
		if err = json.Unmarshal(text[:len(text)-1], &answer); err != nil || answer.ID != b.number {
			continue
		}
		if answer.Error != nil {
			err = fmt.Errorf("%s", answer.Error)
		} else if result != nil {
			err = json.Unmarshal(answer.Result, result)
		}
		break
	}
	if err != nil {
		b.t.Fatalf("browser: %s: %v", method, err)
	}
}

// value is the value of an expression in the page.
func (b *browser) value(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("browser: %s: %v", expression, answer.ExceptionDetails)
	}
	return fmt.Sprint(answer.Result.Value)
}

// until waits until an expression has a value.
func (b *browser) until(expression, want string) {
	b.t.Helper()
	got := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got = b.value(expression); got == want {
			return
		}
	}
	b.t.Fatalf("%s is %q, want %q", expression, got, want)
}

func (b *browser) open(url string) { b.openTo(url, url) }

// openTo opens an address that leads to another one.
func (b *browser) openTo(url, end string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until("location.href + document.readyState", end+"complete")
}

func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

func (b *browser) scheme(name string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// screenshot stores a picture of the whole page in the folder of NUMA_SCREENSHOTS.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("NUMA_SCREENSHOTS")
	if folder == "" {
		return
	}
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestBrowserSeesPagesAndTheirChanges(t *testing.T) {
	b := startBrowser(t)
	c := addBig(occupied.Showcase(t))
	states := map[string]*nodestate.State{"worker-1": stateOf(t, "rig"), "worker-2": stateOf(t, "epyc-2s-nps4"), "big": stateOf(t, "512cpus")}
	board, handler := drawn(t, c, true, states)
	server := httptest.NewServer(handler)
	t.Cleanup(server.CloseClientConnections) // streams do not end by themselves
	b.size(1280, 1000)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for name, path := range map[string]string{
			"overview": "/", "node": "/nodes/worker-1", "node-8-zones": "/nodes/worker-2", "node-512-cpus": "/nodes/big", "node-numbers": "/nodes/worker-3",
			"history": "/nodes/worker-1/zones/numa-1", "claim": "/claims/default/beta-zone", "pod": "/pods/team-a/waits",
		} {
			b.open(server.URL + path)
			b.screenshot(name + "-" + scheme)
			// The page's policy refused nothing, and the colours are there.
			if got := b.value("getComputedStyle(document.querySelector('header')).backgroundColor"); got != map[string]string{"light": "rgb(246, 248, 250)", "dark": "rgb(22, 27, 34)"}[scheme] {
				t.Errorf("%s, %s: the header is %s", path, scheme, got)
			}
		}
	}
	b.open(server.URL + "/nodes/worker-1")
	if got := b.value("document.querySelectorAll('.places > section').length"); got != "5" {
		t.Errorf("%s NUMA nodes are shown, want 4 and one that is not known", got)
	}
	if got := b.value("getComputedStyle(document.querySelector('rect.hue-0')).fill"); got != "rgb(31, 111, 235)" {
		t.Errorf("the first claim is %s", got)
	}
	b.until("document.getElementById('live').textContent", "live")
	b.value("document.querySelector('details').open = true")
	b.value("window.mark = 1") // a page that is loaded again has no mark
	next := addBig(occupied.Showcase(t))
	next.AddClaim("default/newcomer", occupied.Share{Request: "zone", Node: "worker-1", Device: "numa-0", Amounts: "cpu=2"})
	board.Show(&next.Snapshot)
	b.until("document.body.innerText.includes('default/newcomer')", "true")
	if got := b.value("window.mark + '' + document.querySelector('details').open"); got != "1true" {
		t.Errorf("mark and details are %s after a change, want 1true", got)
	}
	for _, path := range []string{"/", "/nodes/worker-2", "/nodes/big", "/nodes/worker-1/zones/numa-1", "/claims/default/beta-zone", "/pods/team-a/waits"} {
		b.size(360, 800)
		b.open(server.URL + path)
		b.screenshot("narrow" + strings.ReplaceAll(path, "/", "-"))
		if got := b.value("document.documentElement.scrollWidth <= 360"); got != "true" {
			t.Errorf("%s is wider than a narrow window", path)
		}
		if b.value("document.title.startsWith('404')") != "false" {
			t.Errorf("there is no page %s", path)
		}
	}
}

// mostSeconds is the largest allowed time from the request to the complete page, on a
// machine that does other work as well.
const mostSeconds = 10

func TestBrowserShowsSmallAndLargeClusters(t *testing.T) {
	b := startBrowser(t)
	b.size(1280, 1000)
	for _, nodes := range []int{10, 1000} {
		_, handler := serve(t, occupied.Large(t, nodes, 8), true)
		server := httptest.NewServer(handler)
		t.Cleanup(server.CloseClientConnections)
		for _, path := range []string{"/", "/?q=claim-00&page=2", "/claims", "/nodes/node-007"} {
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				b.open(server.URL + path)
				b.screenshot(fmt.Sprintf("%d-nodes-%s-%s", nodes, strings.Trim(strings.NewReplacer("/", "-", "?", "", "=", "-", "&", "-").Replace(path), "-"), scheme))
			}
			const measured = "(() => { const n = performance.getEntriesByType('navigation')[0]; return [n.decodedBodySize, n.responseEnd - n.requestStart, n.domComplete].map(Math.round).join(' ') })()"
			var bytes, answered, complete int
			if _, err := fmt.Sscan(b.value(measured), &bytes, &answered, &complete); err != nil || bytes == 0 || bytes > mostBytes || complete > mostSeconds*1000 {
				t.Errorf("%d nodes, %s: %d bytes, answered in %d ms, complete after %d ms, %v", nodes, path, bytes, answered, complete, err)
			}
			t.Logf("%d nodes, %s: %d bytes, answered in %d ms, complete after %d ms", nodes, path, bytes, answered, complete)
		}
	}
}

func TestBrowserWithoutScripts(t *testing.T) {
	b := startBrowser(t)
	_, handler := serve(t, occupied.Large(t, 500, 8), true)
	server := httptest.NewServer(handler)
	t.Cleanup(server.CloseClientConnections)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.size(1280, 1000)
	b.open(server.URL + "/")
	b.screenshot("large")
	var document struct{ Root struct{ NodeID int } }
	b.call("DOM.getDocument", map[string]any{"depth": -1}, &document)
	var refresh struct{ NodeID int }
	b.call("DOM.querySelector", map[string]any{"nodeId": document.Root.NodeID, "selector": "noscript meta[http-equiv=refresh]"}, &refresh)
	if refresh.NodeID == 0 {
		t.Error("without scripts the page does not refresh itself")
	}
	var rows struct{ NodeIDs []int }
	b.call("DOM.querySelectorAll", map[string]any{"nodeId": document.Root.NodeID, "selector": "tbody tr svg rect"}, &rows)
	if len(rows.NodeIDs) != perPage*8*3 { // two claims and what is free, in eight zones
		t.Errorf("%d bars are shown", len(rows.NodeIDs))
	}
	b.open(server.URL + "/?q=node-49&page=1")
	if got := b.value("document.querySelector('.pager').textContent"); got != "1 to 10 of 10" {
		t.Errorf("the search has %s", got)
	}
}

// The address of a page does not have the token, scripts cannot read it, and a page of
// another site cannot use it.
func TestBrowserKeepsTheToken(t *testing.T) {
	b := startBrowser(t)
	handler, _ := guarded(t)
	server := httptest.NewServer(handler)
	t.Cleanup(server.CloseClientConnections)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a id="page" href="%[1]s/nodes/worker-1">page</a><a id="token" href="%[1]s/?token=%[2]s">token</a><iframe src="%[1]s/"></iframe>`, server.URL, token)
	}))
	t.Cleanup(other.Close)
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) // another site than 127.0.0.1
	refused := func(want string) {
		t.Helper()
		if got := b.value("document.title.startsWith('No access') + ' ' + document.body.innerText.includes('worker')"); got != want {
			t.Errorf("%s: refused and with content: %s, want %s", b.value("location.href"), got, want)
		}
	}
	follow := func(id, end string) {
		t.Helper()
		b.open(elsewhere + "/")
		b.value("document.getElementById('" + id + "').click()")
		b.until("location.href + document.readyState", end+"complete")
	}
	b.open(server.URL + "/")
	refused("true false")
	follow("token", server.URL+"/")
	refused("true false") // the cookie is there, but the other site asked
	b.screenshot("no-access")
	b.value("document.querySelector('a').click()")
	b.until("document.title", "Nodes - kubectl numa")
	b.openTo(server.URL+"/?token="+token, server.URL+"/")
	refused("false true")
	if got := b.value("document.cookie + document.referrer"); got != "" {
		t.Errorf("a script reads %q", got)
	}
	b.until("document.getElementById('live').textContent", "live")
	b.value("document.querySelector('tbody a').click()")
	b.until("location.href + document.readyState", server.URL+"/nodes/worker-1complete")
	refused("false true")
	follow("page", server.URL+"/nodes/worker-1")
	refused("true false")
}
