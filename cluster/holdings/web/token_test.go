package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

const (
	token  = "K7V3Q2ZB5YXW4M6NEJHDTRPACS"
	cookie = "numa-ui-8480=" + token
)

// guarded is a server whose pages need the token, and has every path that a link or a
// page names.
func guarded(tb testing.TB) (handler http.Handler, paths []string) {
	tb.Helper()
	board := NewBoard()
	board.Show(&occupied.Showcase(tb).Snapshot)
	return Handler(board, Options{Live: true, Token: token, Explain: explained, Events: eventsOf()}), []string{
		"/", "/nodes/worker-1", "/nodes/worker-1/zones/numa-1", "/nodes/none", "/claims", "/claims/default/beta-zone", "/pods", "/pods/team-a/waits", "/events?after=-1", "/style.css", "/live.js", "/none",
	}
}

// requested is the answer to a request with a cookie.
func requested(ctx context.Context, handler http.Handler, host, path, cookie string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	request.Host = host
	if cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

func TestNothingIsAnsweredWithoutTheToken(t *testing.T) {
	handler, paths := guarded(t)
	for _, path := range paths {
		for _, wrong := range []string{
			"", "numa-ui-8480=", "numa-ui-8480=x", "numa-ui-8480=" + token[1:], "numa-ui-8480=" + token + "x", "numa-ui-8480=" + strings.ToLower(token),
			"numa-ui-8481=" + token, "token=" + token, "numa-ui=" + token,
		} {
			answer := requested(t.Context(), handler, "127.0.0.1:8480", path, wrong)
			if text := answer.Body.String(); answer.Code != http.StatusForbidden || text != refusal || answer.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s, cookie %q: %d, %v\n%s", path, wrong, answer.Code, answer.Header(), text)
			}
		}
	}
	for _, path := range []string{"/?token=", "/?token=" + token[1:], "/?token=" + token + "x", "/?Token=" + token, "/?q=" + token, "/?token=x&token=" + token} {
		if answer := requested(t.Context(), handler, "127.0.0.1:8480", path, ""); answer.Code != http.StatusForbidden {
			t.Errorf("%s: %d\n%s", path, answer.Code, answer.Body)
		}
	}
}

// The address is replaced by one without the token, and no other site gets to know it.
func TestTokenBecomesACookie(t *testing.T) {
	handler, paths := guarded(t)
	for _, path := range []string{"/?token=" + token, "/claims?q=x&token=" + token, "//evil.example/?token=" + token} {
		answer := requested(t.Context(), handler, "127.0.0.1:8480", path, "")
		header := answer.Header()
		if answer.Code != http.StatusSeeOther || header.Get("Location") != "/" || header.Get("Set-Cookie") != cookie+"; Path=/; HttpOnly; SameSite=Strict" ||
			header.Get("Referrer-Policy") != "no-referrer" || header.Get("Cache-Control") != "no-store" || strings.Contains(answer.Body.String(), token) {
			t.Errorf("%s: %d, %v\n%s", path, answer.Code, header, answer.Body)
		}
	}
	for _, path := range paths {
		if strings.HasPrefix(path, "/events") {
			continue // it does not end
		}
		answer := requested(t.Context(), handler, "127.0.0.1:8480", path, "a=b; numa-ui-8480=x; "+cookie)
		if (answer.Code != http.StatusOK) != strings.HasSuffix(path, "/none") || strings.Contains(answer.Body.String(), token) {
			t.Errorf("%s: %d\n%s", path, answer.Code, answer.Body)
		}
	}
}

// A name that another site resolves to this machine gets no cookie, even with the token.
func TestForeignHostsGetNoCookie(t *testing.T) {
	handler, _ := guarded(t)
	for _, host := range []string{"evil.example:8480", "127.0.0.1.evil.example:8480", ""} {
		answer := requested(t.Context(), handler, host, "/?token="+token, cookie)
		if answer.Code != http.StatusMisdirectedRequest || answer.Header().Get("Set-Cookie") != "" || strings.Contains(answer.Body.String(), "worker") {
			t.Errorf("host %q: %d, %v\n%s", host, answer.Code, answer.Header(), answer.Body)
		}
	}
}

func TestAddressHasTheToken(t *testing.T) {
	if got := (Options{Token: token}).Address("[::1]:8480"); got != "http://[::1]:8480/?token="+token {
		t.Errorf("with a token: %s", got)
	}
	if got := (Options{}).Address("127.0.0.1:80"); got != "http://127.0.0.1:80/" {
		t.Errorf("without: %s", got)
	}
	if a, b := NewToken(), NewToken(); a == b || len(a) < 26 {
		t.Errorf("tokens %s and %s", a, b)
	}
}
