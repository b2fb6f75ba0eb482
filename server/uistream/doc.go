// Package uistream encodes the events of a run for front ends of the web, as the UI message stream
// of Vercel's AI SDK (useChat).
//
//	events of a run  ->  Encoder  ->  frames, each one JSON value  ->  data: lines of a response
//
// A Server answers /v1/ui with it. An application with an endpoint of its own uses
// Write.
package uistream
