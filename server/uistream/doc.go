// Package uistream encodes the events of a run for front ends of the web, as the UI message stream
// of Vercel's AI SDK (useChat), or as the events of AG-UI.
//
//	events of a run  ->  Encoder  ->  frames, each one JSON value  ->  data: lines of a response
//
// A Server answers /v1/ui and /v1/agui with it. An application with an endpoint of its own uses
// Write.
package uistream
