// Package contents numbers the messages of a transcript, and lists them. It lets a model find and
// read each of them again: history.Window shows the list in place of old steps, and the tool
// result_read reads by its ids.
//
//	user/0      what the user said before the first reply
//	reply/1     what the model wrote in reply 1, with its calls and all of their arguments
//	run/1/0     the result of the first call of reply 1
//	user/1      what the user said after reply 1
//	index       the list of all of these
//
// The number of a reply is the number in the keys of its results. So it does not change if a
// middleware leaves out the beginning of the transcript. A reply whose results have no keys has the
// number after the reply before. Reasoning has no id: a model does not read it again.
package contents
