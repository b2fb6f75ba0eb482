// What the official client makes of pawl serve, whose models are agents: cmd/pawl's test reads it.
import OpenAI from 'openai';

const client = new OpenAI({ apiKey: process.argv[3], baseURL: process.argv[2] + '/v1' }); // defaults: it repeats requests
const schema = { type: 'object', properties: { at: { type: 'string' } } };
const city = { type: 'json_schema', json_schema: { name: 'city', schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } };
const all = {};

async function thrown(f) {
	try {
		return { nothing: await f() };
	} catch (err) {
		return { status: err.status ?? null, name: err.constructor.name, code: err.code };
	}
}

all.models = (await client.models.list()).data.map((m) => m.id);
all.model = (await client.models.retrieve('clerk')).id;

for (const stream of [false, true]) {
	const mode = stream ? 'streamed ' : 'whole ';
	const tools = [{ type: 'function', function: { name: 'locate', description: 'Where the user is.', parameters: schema } }];
	const chat = async (messages, more) => {
		const body = { model: 'clerk', messages, ...more };
		return stream ? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion() : await client.chat.completions.create(body);
	};
	const readChat = (r) => ({
		text: r.choices[0].message.content ?? '',
		calls: (r.choices[0].message.tool_calls ?? []).map((c) => c.function.name + c.function.arguments),
		finish: r.choices[0].finish_reason,
		usage: r.usage.total_tokens > 0,
	});
	all[mode + 'chat text'] = readChat(await chat([{ role: 'system', content: 'Be short.' }, { role: 'user', content: 'hello there' }]));
	all[mode + 'chat own tool'] = readChat(await chat([{ role: 'user', content: 'look Oslo' }]));
	const messages = [{ role: 'user', content: 'locate me' }];
	const asked = await chat(messages, { tools });
	all[mode + 'chat call'] = readChat(asked);
	messages.push(asked.choices[0].message);
	for (const c of asked.choices[0].message.tool_calls) messages.push({ role: 'tool', tool_call_id: c.id, content: 'Rome' });
	const told = await chat(messages, { tools });
	all[mode + 'chat result'] = readChat(told);
	messages.push(told.choices[0].message, { role: 'user', content: 'hello again' });
	all[mode + 'chat next'] = readChat(await chat(messages, { tools }));
	all[mode + 'chat parallel tools'] = readChat(await chat([{ role: 'user', content: 'both Oslo' }]));
	all[mode + 'chat prose'] = readChat(await chat([{ role: 'user', content: 'prose' }], { response_format: city }));
	all[mode + 'chat fails'] = await thrown(() => chat([{ role: 'user', content: 'fail 7' }]));
	all[mode + 'chat no model'] = await thrown(() => client.chat.completions.create({ model: 'nobody', messages, stream }));
	all[mode + 'chat needs a yes'] = await thrown(() => chat([{ role: 'user', content: 'pay 7' }]));
	all[mode + 'chat fails after a write'] = await thrown(() => chat([{ role: 'user', content: 'refund 7' }]));

	const flat = tools.map((t) => ({ type: 'function', ...t.function, strict: false }));
	const ask = async (input, more) => {
		const body = { model: 'clerk', input, ...more };
		return stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
	};
	all[mode + 'responses fails after a write'] = await thrown(async () => {
		const r = await ask('refund 8');
		return r.error.code;
	});
	const read = (r) => ({
		text: r.output_text,
		calls: r.output.filter((i) => i.type === 'function_call').map((c) => c.name + c.arguments),
		finish: r.status,
		usage: r.usage.total_tokens > 0,
	});
	const first = await ask('hello there');
	all[mode + 'responses text'] = read(first);
	all[mode + 'responses own tool'] = read(await ask('look Oslo'));
	all[mode + 'responses next'] = read(await ask('look back', { previous_response_id: first.id }));
	const call = await ask('locate me', { tools: flat });
	all[mode + 'responses call'] = read(call);
	const results = call.output.filter((i) => i.type === 'function_call').map((c) => ({ type: 'function_call_output', call_id: c.call_id, output: 'Rome' }));
	const done = await ask(results, { tools: flat, previous_response_id: call.id });
	all[mode + 'responses result'] = read(done);
	const again = await client.responses.retrieve(done.id);
	await client.responses.delete(done.id);
	all[mode + 'responses again'] = { text: again.output_text, status: again.status, gone: (await thrown(() => client.responses.retrieve(done.id))).status };

	// what Codex CLI sends: custom tools, namespaces and tools that OpenAI's servers execute
	const many = [
		{ type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
		{ type: 'namespace', name: 'desk', description: 'd', tools: flat },
		{ type: 'web_search' },
	];
	const shown = (r) => r.output.map((i) => [i.type, i.namespace, i.name, i.input ?? i.arguments ?? i.content[0].text].join(' '));
	for (const word of ['patch', 'desk']) {
		const asks = await ask(word, { tools: many });
		const kind = { custom_tool_call: 'custom_tool_call_output', function_call: 'function_call_output' };
		const outputs = asks.output.map((i) => ({ type: kind[i.type], call_id: i.call_id, output: 'ok' }));
		const ends = await ask(outputs, { tools: many });
		let stored = '';
		for await (const e of await client.responses.retrieve(asks.id, { stream: true })) if (e.type === 'response.completed') stored = shown(e.response);
		const items = [];
		for await (const i of client.responses.inputItems.list(ends.id, { order: 'asc' })) items.push(i.type);
		all[mode + 'responses ' + word] = { asks: shown(asks), stored, ends: ends.output_text, items, cancel: (await client.responses.cancel(ends.id)).status };
	}
	let text = '';
	for await (const e of await client.responses.retrieve(first.id, { stream: true })) if (e.type === 'response.output_text.delta') text += e.delta;
	const conversation = (await client.conversations.create()).id;
	const seen = [];
	for (let i = 0; i < 3; i++) seen.push((await ask('count', { conversation })).output_text);
	const pdf = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjcgeA==' };
	const file = await thrown(async () => (await ask([{ role: 'user', content: [{ type: 'input_text', text: 'object' }, pdf] }])).output_text);
	all[mode + 'responses stored'] = { text, seen, file };
	all[mode + 'responses no model'] = await thrown(() => client.responses.create({ model: 'nobody', input: 'x', stream }));
}

let ran = 0;
const runner = client.chat.completions.runTools({
	model: 'clerk',
	messages: [{ role: 'user', content: 'locate me' }],
	tools: [{ type: 'function', function: { name: 'locate', description: 'd', parameters: schema, parse: JSON.parse, function: () => (ran++, 'Paris') } }],
});
all['runTools'] = { text: await runner.finalContent(), ran };
all['wrong token'] = await thrown(() => new OpenAI({ apiKey: 'nobody-has-this', baseURL: process.argv[2] + '/v1', maxRetries: 0 }).models.list());
console.log(JSON.stringify(all));
