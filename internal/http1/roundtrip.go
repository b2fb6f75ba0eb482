package http1

import (
	"io"
	"net/http"
	"strconv"
)

// RoundTrip sends a request that Takes says fits, as an http.RoundTripper does. Do costs less.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &Exchange{Host: r.URL.Host, Target: r.URL.RequestURI(), Full: true}
	if r.Host != "" {
		x.Host = r.Host
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength+1))
	if e := r.Body.Close(); err == nil {
		err = e
	}
	if err == nil && int64(len(body)) != r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if x.Header, err = AppendHeader(nil, r.Header); err != nil {
		return nil, err
	}
	x.Body = body
	if err := t.Do(r.Context(), x); err != nil {
		return nil, err
	}
	h := x.Head()
	res := &http.Response{Status: strconv.Itoa(x.Status) + " " + http.StatusText(x.Status), StatusCode: x.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: x, ContentLength: x.Length, Close: !x.keep, Request: r}
	if x.framing == byChunks {
		res.TransferEncoding = []string{"chunked"}
		h.Del("Transfer-Encoding")
	}
	return res, nil
}

// Takes reports whether r is a request for RoundTrip: a POST that fits, to the host that it names, of a body whose length is known and small enough to hold.
func Takes(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Body != nil && r.ContentLength > 0 && r.ContentLength < maxHeld && !r.Close && len(r.TransferEncoding) == 0 &&
		(r.Host == "" || r.Host == r.URL.Host) && Fits(r.URL, r.Header)
}

const maxHeld = 64 << 20
