package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// A file of a URL is read within these limits. The objects of a large cluster have tens of
// megabytes.
const (
	urlTimeout  = time.Minute
	maxURLBytes = 256 << 20
)

// parseURL returns the URL that a value of --filename is. As for kubectl, it is a file
// unless it begins with a scheme of HTTP.
func parseURL(name string) (address *url.URL, is bool) {
	address, err := url.Parse(name)
	return address, err == nil && (address.Scheme == "http" || address.Scheme == "https") && address.Host != ""
}

func useURL(ctx context.Context, address *url.URL, use func(name string, text io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, urlTimeout)
	defer cancel()
	text, err := fetch(ctx, address, maxURLBytes)
	if err != nil {
		return fmt.Errorf("--filename: %w", err)
	}
	return use(address.Redacted(), bytes.NewReader(text))
}

// fetch returns the file of a URL, if it has at most so many bytes.
func fetch(ctx context.Context, address *url.URL, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err // it names the method and the URL
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: the server answers %s", address.Redacted(), answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address.Redacted(), err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("get %s: the file has more than %d bytes", address.Redacted(), most)
	}
	return text, nil
}
