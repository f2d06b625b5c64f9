package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func post(t *testing.T, server *httptest.Server, token, query, stdin string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, server.URL+"/exec?"+query, strings.NewReader(stdin))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Rig-Token", token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestExecPassesInputOutputAndExitCode(t *testing.T) {
	server := httptest.NewServer(agent{token: "secret"})
	defer server.Close()
	answer, body := post(t, server, "secret", url.Values{"arg": {"sh", "-c", "cat; echo err >&2; exit 3"}}.Encode(), "in\n")
	if body != "in\nerr\n" || answer.Trailer.Get("Rig-Exit") != "3" {
		t.Errorf("output %q, exit %q; want in, err and 3", body, answer.Trailer.Get("Rig-Exit"))
	}
	answer, body = post(t, server, "secret", "arg=/no/such/program", "")
	if answer.Trailer.Get("Rig-Exit") != "127" || !strings.Contains(body, "/no/such/program") {
		t.Errorf("output %q, exit %q; want the program's name and 127", body, answer.Trailer.Get("Rig-Exit"))
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	server := httptest.NewServer(agent{token: "secret"})
	defer server.Close()
	if answer, _ := post(t, server, "guess", "arg=true", ""); answer.StatusCode != http.StatusForbidden {
		t.Errorf("status %d, want %d", answer.StatusCode, http.StatusForbidden)
	}
}

func TestConnectCarriesBytesBothWays(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		if conn, err := echo.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	server := httptest.NewServer(agent{token: "secret"})
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\nRig-Token: secret\r\n\r\n", echo.Addr())
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v, %v", answer, err)
	}
	_, _ = io.WriteString(conn, "there and back\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "there and back\n" {
		t.Errorf("read %q, %v", line, err)
	}
}
