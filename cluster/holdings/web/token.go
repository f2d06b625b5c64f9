package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
)

// tokenParameter is the parameter of the address that has the token.
const tokenParameter = "token"

// NewToken returns a random token, with 128 bits or more.
func NewToken() string { return rand.Text() }

// Address returns the address of the pages for a browser. It has the token.
func (o Options) Address(host string) string {
	address := "http://" + host + "/"
	if o.Token != "" {
		address += "?" + tokenParameter + "=" + o.Token
	}
	return address
}

// refusal is the page for browsers without the token. Its link helps a browser that
// followed a link of another site to the address: a browser sends the cookie only if one
// of our pages, or the user, asked for the page.
const refusal = `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>No access - kubectl numa</title>
<h1>No access</h1>
<p>Open the address that <code>kubectl numa ui</code> has printed. It has a token that other users of this machine do not know.</p>
<p>If you have just done that, <a href="/">go to the pages</a>.</p>
</html>
`

// withToken answers only browsers that know the token. A browser has it from the address
// that the user opens, and gets a cookie instead of it, so that neither the address bar
// nor a link has the token. Scripts cannot read the cookie, and the browser does not send
// it for pages of other sites. If the token is "", everyone gets an answer.
func withToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	isToken := func(given string) bool {
		hash := sha256.Sum256([]byte(given)) // of the same length, so the comparison always takes the same time
		return subtle.ConstantTimeCompare(hash[:], want[:]) == 1
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, query := cookieName(r.Host), r.URL.Query()
		switch {
		case isToken(query.Get(tokenParameter)):
			http.SetCookie(w, &http.Cookie{Name: name, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther) // never to a path that the request has
		case slices.ContainsFunc(r.CookiesNamed(name), func(c *http.Cookie) bool { return isToken(c.Value) }):
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(refusal))
		}
	})
}

// cookieName returns the name of the cookie. Browsers send cookies to all ports of a
// host, so servers on other ports have cookies of other names.
func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return "numa-ui-" + port
}
