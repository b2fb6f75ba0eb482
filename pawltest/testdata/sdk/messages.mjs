// What Anthropic's official client makes of pawl serve, whose models are agents: cmd/pawl's test reads it.
import Anthropic from '@anthropic-ai/sdk';

const [, , baseURL, token] = process.argv;
const client = new Anthropic({ apiKey: token, baseURL }); // defaults: it repeats requests
const all = {};
const schema = { type: 'object', properties: { at: { type: 'string' } } };
const tools = [{ name: 'locate', description: 'Where the user is.', input_schema: schema }];
const city = { type: 'json_schema', schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } };
const user = (content) => ({ role: 'user', content });

async function thrown(f) {
	try {
		return { nothing: await f() };
	} catch (err) {
		return { status: err.status ?? null, name: err.constructor.name, type: err.error?.error?.type, code: err.error?.error?.code };
	}
}

for (const stream of [false, true]) {
	const mode = stream ? 'streamed ' : 'whole ';
	const ask = async (messages, more) => {
		const body = { model: 'clerk', max_tokens: 1000, messages: typeof messages === 'string' ? [user(messages)] : messages, ...more };
		return stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
	};
	const read = (r) => ({
		text: r.content.filter((b) => b.type === 'text').map((b) => b.text).join(''),
		calls: r.content.filter((b) => b.type === 'tool_use').map((b) => b.name + JSON.stringify(b.input)),
		stop: r.stop_reason,
		usage: r.usage.input_tokens > 0 && r.usage.output_tokens > 0,
	});
	all[mode + 'text'] = read(await ask('hello there', { system: 'Be short.' }));
	all[mode + 'own tool'] = read(await ask('look Oslo'));
	all[mode + 'parallel tools'] = read(await ask('both Oslo'));
	all[mode + 'prose'] = read(await ask('prose', { output_config: { format: city } }));

	const messages = [user('locate me')];
	const asked = await ask(messages, { tools });
	all[mode + 'call'] = read(asked);
	messages.push({ role: 'assistant', content: asked.content });
	messages.push(user(asked.content.filter((b) => b.type === 'tool_use').map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: 'Rome' }))));
	const told = await ask(messages, { tools });
	all[mode + 'result'] = read(told);
	messages.push({ role: 'assistant', content: told.content }, user('hello again'));
	all[mode + 'next'] = read(await ask(messages, { tools }));

	const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjcgeA==' } };
	all[mode + 'file'] = read(await ask([user([pdf, { type: 'text', text: 'object' }])]));
	all[mode + 'skipped'] = read(await ask('hello there', { tools: [{ type: 'web_search_20250305', name: 'web_search' }, ...tools] }));
	all[mode + 'fails'] = await thrown(() => ask('fail 7'));
	all[mode + 'needs a yes'] = await thrown(() => ask('pay 7'));
	all[mode + 'fails after a write'] = await thrown(() => ask('refund 7'));
	all[mode + 'no model'] = await thrown(() => ask('x', { model: 'nobody' }));
}

let ran = 0;
const locate = { name: 'locate', description: 'd', input_schema: schema, run: () => (ran++, 'Paris') };
const runner = client.beta.messages.toolRunner({ model: 'clerk', max_tokens: 1000, messages: [user('locate me')], tools: [locate] });
all.toolRunner = { text: (await runner).content.map((b) => b.text).join(''), ran };

const count = async (messages) => (await client.messages.countTokens({ model: 'clerk', messages, tools })).input_tokens;
const few = await count([user('hello')]);
all.counted = few > 100 && (await count([user('hello '.repeat(1000))])) - few > 1000;
all.models = (await client.models.list()).data.map((m) => [m.type, m.id, m.display_name, m.created_at.slice(0, 2)].join(' '));
all.model = (await client.models.retrieve('clerk')).id;
all['wrong token'] = await thrown(() => new Anthropic({ apiKey: 'nobody-has-this', baseURL, maxRetries: 0 }).models.list());
all.bearer = (await new Anthropic({ apiKey: null, authToken: token, baseURL }).messages.create({ model: 'clerk', max_tokens: 1000, messages: [user('hello there')] })).stop_reason;
console.log(JSON.stringify(all));
