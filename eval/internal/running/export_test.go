package running

import "net/http"

// Around is the transport of one trial.
func Around(p *Paces, next http.RoundTripper, model string) http.RoundTripper {
	return p.around(next, model, new(waiting))
}
