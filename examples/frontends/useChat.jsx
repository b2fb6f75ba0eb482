// A chat with useChat: text, reasoning, a card for each call, approvals with changed arguments, and
// the conversation again when the page is loaded again.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const api = '/v1/ui/clerk';
const id = (location.hash ||= '#' + crypto.randomUUID()).slice(1);

const works = (chat) => chat.status === 'submitted' || chat.status === 'streaming';

// A question can be answered when the stream that contains it has ended.
function Question({ part, chat, busy }) {
	const [args, change] = useState(JSON.stringify(part.input, null, 1));
	const [fault, complain] = useState('');
	const { id } = part.approval;
	const approve = () => {
		try {
			const edits = args === JSON.stringify(part.input, null, 1) ? {} : { [id]: JSON.parse(args) };
			chat.addToolApprovalResponse({ id, approved: true, options: { body: { pawl: { edits } } } });
		} catch (e) {
			complain(e.message);
		}
	};
	return (
		<>
			<textarea aria-label="arguments" rows={args.split('\n').length} value={args} onChange={(e) => change(e.target.value)} />
			{fault && <div className="error">{fault}</div>}
			<div className="row">
				<button className="yes" disabled={busy} onClick={approve}>Approve</button>
				<button className="no" disabled={busy} onClick={() => chat.addToolApprovalResponse({ id, approved: false, reason: 'not now' })}>Deny</button>
			</div>
		</>
	);
}

function Call({ part, chat, busy }) {
	const name = part.title ?? part.toolName ?? part.type.slice('tool-'.length);
	const asks = part.state === 'approval-requested';
	const result = part.state === 'output-error' ? part.errorText : part.output;
	return (
		<section className={asks ? 'card asks' : 'card'}>
			<header>{name}<span>{part.state.replaceAll('-', ' ')}</span></header>
			{asks ? <Question part={part} chat={chat} busy={busy} /> : <code>{JSON.stringify(part.input)}</code>}
			{result !== undefined && <code>{typeof result === 'string' ? result : JSON.stringify(result)}</code>}
		</section>
	);
}

function Part({ part, chat, busy }) {
	if (part.type === 'text') return <div className="text">{part.text}</div>;
	if (part.type === 'reasoning') return <div className="thought">{part.text}</div>;
	if (part.type === 'dynamic-tool' || part.type.startsWith('tool-')) return <Call part={part} chat={chat} busy={busy} />;
	return null;
}

function Page({ messages }) {
	const [text, write] = useState('');
	const chat = useChat({
		id, messages,
		transport: new DefaultChatTransport({ api }),
		sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
	});
	// The stream that continues after a load replaces the last message, and an answer before it is lost.
	const [resuming, resume] = useState(messages.length > 0);
	useEffect(() => {
		if (resuming) chat.resumeStream().finally(() => resume(false));
	}, []);
	const send = (e) => {
		e.preventDefault();
		if (text) chat.sendMessage({ text });
		write('');
	};
	return (
		<>
			<h1>useChat</h1>
			<div id="messages">
				{chat.messages.map((m) => m.role === 'user'
					? <div key={m.id} className="user">{m.parts.map((p) => p.text).join('')}</div>
					: m.parts.map((p, i) => <Part key={m.id + i} part={p} chat={chat} busy={resuming || works(chat)} />))}
				{chat.error && <div className="error">{chat.error.message}</div>}
			</div>
			<form onSubmit={send}>
				<input aria-label="message" placeholder="Pay invoice 7" value={text} onChange={(e) => write(e.target.value)} />
				{works(chat) ? <button type="button" onClick={() => fetch(`${api}/${id}/stop`, { method: 'POST' })}>Stop</button> : <button>Send</button>}
			</form>
		</>
	);
}

const history = await fetch(`${api}/${encodeURIComponent(id)}`).then((r) => r.json());
createRoot(document.getElementById('page')).render(<Page messages={history.messages} />);
