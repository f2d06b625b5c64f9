package web

import (
	"fmt"
	"net/http"
)

// events tells a page that there is a newer version, with server-sent events. The page
// then reloads itself.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	after := whole(r.FormValue("after"), -1)
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	for {
		now := s.board.state.Load()
		if now.version != after {
			if _, err := fmt.Fprintf(w, "event: change\ndata: %d\n\n", now.version); err != nil {
				return
			}
			after = now.version
		}
		if err := flusher.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-now.next:
		}
	}
}
