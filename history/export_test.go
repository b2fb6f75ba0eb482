package history

// Tiers returns a copy of o without some of the means.
func Tiers(o WindowOptions, noStubs, noFold, noCut bool) *WindowOptions {
	o.noStubs, o.noFold, o.noCut = noStubs, noFold, noCut
	return &o
}
