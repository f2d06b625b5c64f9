// Package profile asks a program for its CPU profile, and says which part of the program
// used how much of it.
package profile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/pprof/profile"
)

// Source is a Go program that has the page /debug/pprof/profile.
type Source struct {
	Client *http.Client
	URL    string // of the page
	// Piece is for how long the program is profiled at a time, in whole seconds. It cannot
	// be told to end earlier, so a profile takes so much longer at most.
	Piece time.Duration
}

// During profiles the program while do runs, and for one more piece at most.
func (s Source) During(ctx context.Context, do func() error) (*profile.Profile, error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	var pieces []*profile.Profile
	for {
		next, err := s.get(ctx)
		if err != nil {
			return nil, errors.Join(err, <-done)
		}
		pieces = append(pieces, next)
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
			return profile.Merge(pieces)
		default:
		}
	}
}

func (s Source) get(ctx context.Context) (_ *profile.Profile, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?seconds=%d", s.URL, s.Piece/time.Second), nil)
	if err != nil {
		return nil, err
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", request.URL, response.Status)
	}
	p, err := profile.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", request.URL, err)
	}
	return p, nil
}
