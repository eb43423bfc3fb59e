import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { Webhook } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import { HeaderList } from '../../../http/headers.ts'
import { traceparentOf } from '../../../observe/telemetry/trace.ts'
import type { FlatMessage } from '../common/types.ts'
import { postJson, itemsOf, member, type GuardConfig } from './service.ts'
import type { Guard, Outcome, Subject } from './types.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'

type HeaderTest = (value: string) => boolean

/** The user's own guard service, called over HTTP (llm.md §13.3). */
export function compileWebhook({ backendRef, forwardHeaderMatches = [] }: Webhook, config: GuardConfig): Guard {
  const tests = forwardHeaderMatches.map(({ name, value, type }) => ({ name: name.toLowerCase(), isWanted: compileTest(value, type) }))
  return async (subject) => {
    const messages = await runWhileConnected(subject.messages(), subject.exchange)
    const body = subject.phase === 'Request' ? { messages } : { choices: messages.map((message) => ({ message })) }
    const reply = await postJson(config, subject.exchange, config.state.destinations.forPolicy(backendRef), {
      target: subject.phase === 'Request' ? '/request' : '/response',
      body: { body },
      headers: selectHeaders(subject, tests),
    })
    return applyReply(reply, subject)
  }
}

function compileTest(value: string, type: 'Exact' | 'RegularExpression' = 'Exact'): HeaderTest {
  if (type === 'Exact') return (actual) => actual === value
  const regex = compileRegex(value)
  // An invalid pattern matches nothing; the policy's status reports it.
  return isRegexError(regex) ? () => false : (actual) => regex.test(actual)
}

/** Selects the headers to forward: all values of a header if one of them matches. */
function selectHeaders({ phase, headers, exchange }: Subject, tests: readonly { readonly name: string; readonly isWanted: HeaderTest }[]): HeaderList {
  const candidates = headers.clone()
  candidates.remove('content-length')
  const traceparent = phase === 'Response' ? (traceparentOf(exchange) ?? exchange.request.headers.get('traceparent')) : undefined
  if (traceparent !== undefined) candidates.set('traceparent', traceparent)
  const selected = new HeaderList()
  for (const name of new Set(tests.map((test) => test.name))) {
    const values = candidates.getAll(name)
    if (values.some((value) => tests.some((test) => test.name === name && test.isWanted(value)))) for (const value of values) selected.append(name, value)
  }
  return selected
}

/** Applies the webhook's `action` by its shape: an object body masks, a text body with a status rejects, anything else allows. */
function applyReply(reply: unknown, subject: Subject): Outcome {
  const action = member(reply, 'action')
  if (typeof action !== 'object' || action === null) throw new ProxyError('GUARD_FAILED', { cause: new Error('the response of the webhook has no action') })
  const body = member(action, 'body')
  const status = member(action, 'status_code')
  if (typeof body === 'object' && body !== null) return mask(body, subject)
  if (typeof body === 'string' && typeof status === 'number') return { action: 'Reject', response: { status: checkStatus(status), body } }
  return { action: 'Allow' }
}

function mask(body: object, subject: Subject): Outcome {
  const messages = subject.phase === 'Request' ? itemsOf(member(body, 'messages')) : itemsOf(member(body, 'choices')).map((choice) => member(choice, 'message'))
  try {
    subject.replaceMessages(messages.map(readMessage))
  } catch (cause) {
    throw new ProxyError('GUARD_FAILED', { cause })
  }
  return { action: 'Mask' }
}

function readMessage(message: unknown): FlatMessage {
  const [role, content] = [member(message, 'role'), member(message, 'content')]
  if (typeof content !== 'string') throw new TypeError('a message of the webhook response has no content')
  return { role: typeof role === 'string' ? role : 'assistant', content }
}

function checkStatus(status: number): number {
  if (Number.isInteger(status) && status >= 200 && status <= 599) return status
  throw new ProxyError('GUARD_FAILED', { cause: new Error(`the webhook rejected with the invalid status ${status}`) })
}
