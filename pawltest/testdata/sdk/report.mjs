// What every script of this folder does: it asks the simulator at argv[2] in each way, and prints what the client made of
// the answers as JSON.
//
// A client has three functions. ask(text, stream) sends a question, with the tools look and find, and returns
// {text, calls: [{name, args}], finish, usage: [input, output]}. go(text, results, stream) asks, answers the calls with
// results (by name; where the API has it, an image goes with the last one), and returns the same of the second reply. see(stream) asks
// about an image.
export async function report(client) {
	const all = {};
	for (const stream of [false, true]) {
		const mode = stream ? 'streamed' : 'whole';
		all[mode + ' text'] = await client.ask('text', stream);
		all[mode + ' calls'] = await client.ask('calls', stream);
		all[mode + ' cut'] = await client.ask('cut', stream);
		all[mode + ' loop'] = await client.go('calls', { look: 'one', find: 'two' }, stream);
		all[mode + ' image'] = await client.see(stream);
		all[mode + ' refused'] = await thrown(() => client.ask('busy', stream));
		all[mode + ' dangling'] = await thrown(() => client.go('calls', { look: 'one' }, stream));
	}
	console.log(JSON.stringify(all));
}

async function thrown(f) {
	try {
		return { nothing: await f() };
	} catch (err) {
		return { status: err.status ?? null, name: err.constructor.name };
	}
}

export const schema = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
export const png = 'iVBORw0KGgo='; // eight bytes
export const root = process.argv[2];
