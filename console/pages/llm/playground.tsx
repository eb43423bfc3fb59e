import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Overview } from '#api/management/overview.ts'
import type { TryResult } from '#api/management/requests.ts'
import type { RouteSummary } from '#api/management/routes.ts'
import { sendStream } from '../../api/client.ts'
import { parseHeaders, splitUrl } from '../../api/draft.ts'
import { overview } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { formatMs, formatNumber } from '../../ui/format.ts'
import { Badge, PageHead, Panel, toneOfStatus } from '../../ui/panel.tsx'
import { linkTo } from '../../ui/router.ts'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { Waterfall } from '../routes/waterfall.tsx'
import { buildBody, formats, ReplyReader, type Chat, type Format, type Reply, type Turn } from './chat.ts'
import { CodePanel } from './code-panel.tsx'
import { findPlaces, PlaceFields, type Place } from './places.tsx'

/** What the form holds. */
interface Form {
  readonly listener: string
  /** Host and path before that of the format, such as `llm.example/v1`. */
  readonly base: string
  readonly format: Format
  readonly models: readonly [string, string]
  readonly headers: string
  readonly system: string
  readonly prompt: string
  readonly image: string
  readonly tools: string
  readonly isStreaming: boolean
}

/** One response of a model, as far as it was received. */
interface Answer {
  readonly reply: Reply
  readonly status: number | undefined
  readonly firstMs: number | undefined
  readonly totalMs: number | undefined
  readonly result: TryResult | undefined
  readonly failure: string
}

/** The conversation with one model. */
interface Thread {
  readonly turns: readonly Turn[]
  readonly answer: Answer | undefined
}

const TIMEOUT_MS = 60_000
const noReply: Reply = { text: '', tools: [], inputTokens: undefined, outputTokens: undefined, error: undefined }
const noAnswer: Answer = { reply: noReply, status: undefined, firstMs: undefined, totalMs: undefined, result: undefined, failure: '' }
const noThread: Thread = { turns: [], answer: undefined }

const form = signal<Form | undefined>(undefined)
const threads = signal<readonly [Thread, Thread]>([noThread, noThread])
const pending = signal(0)

/** A chat with one model or two, through a listener of the gateway, as a client of the route would have it. */
export function PlaygroundView() {
  const data = overview.value
  const abort = useRef(new AbortController())
  useEffect(() => () => abort.current.abort(), [])
  const { value: routes } = useResource<{ readonly routes: readonly RouteSummary[] }>('/api/v1/routes')
  if (data === undefined || routes === undefined) return <Loading />
  const places = findPlaces(data, routes.routes)
  const current = form.value ?? firstForm(places[0] ?? { listener: data.listeners[0]?.key ?? '', base: 'localhost/v1' })
  const change = (part: Partial<Form>): void => void (form.value = { ...current, ...part })
  const submit = (): void => {
    if (pending.value > 0 || current.prompt.trim() === '') return
    form.value = { ...current, prompt: '', image: '' }
    abort.current = new AbortController()
    const used = current.models.map((model, index) => ({ model: model.trim(), index })).filter(({ model, index }) => index === 0 || model !== '')
    for (const { model, index } of used) void converse(current, model, index as 0 | 1, abort.current.signal)
  }
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumbs">
        <a href={linkTo(['llm'])}>LLM</a>
      </nav>
      <PageHead title="Playground">
        <p class="muted">Each message passes through a listener of the gateway, with the policies and guards of its route, and reaches the provider.</p>
      </PageHead>
      <Settings data={data} places={places} form={current} onChange={change} />
      <div class={`threads${current.models[1].trim() === '' ? '' : ' is-double'}`}>
        {([0, 1] as const).map(
          (index) =>
            (index === 0 || current.models[1].trim() !== '') && <Conversation key={index} model={current.models[index]} thread={threads.value[index]} />,
        )}
      </div>
      <Prompt form={current} onChange={change} onSubmit={submit} onStop={() => abort.current.abort()} />
      <CodePanel chat={chatOf(current, current.models[0], nextTurns(current))} endpoint={endpointOf(data, current)} />
    </>
  )
}

const firstForm = ({ listener, base }: Place): Form => ({
  listener,
  base,
  format: 'completions',
  models: ['gpt-4o', ''],
  headers: '',
  system: '',
  prompt: '',
  image: '',
  tools: '',
  isStreaming: true,
})

const turnOf = ({ prompt, image }: Form): Turn => ({ role: 'user', text: prompt, image: image.trim() })

/** The turns of the request that Send sends; without a message, of the last one. */
function nextTurns(current: Form): readonly Turn[] {
  const { turns } = threads.value[0]
  if (current.prompt !== '' || turns.length === 0) return [...turns, turnOf(current)]
  return turns.at(-1)?.role === 'assistant' ? turns.slice(0, -1) : turns
}

const chatOf = ({ format, system, isStreaming, tools }: Form, model: string, turns: readonly Turn[]): Chat => ({
  format,
  model: model.trim(),
  system,
  turns,
  isStreaming,
  tools,
})

function endpointOf({ listeners }: Overview, { listener, base, headers }: Form) {
  const { host, path } = splitUrl(base)
  const { protocol, port } = listeners.find(({ key }) => key === listener) ?? { protocol: 'HTTP', port: 80 }
  const own = port === (protocol === 'HTTPS' ? 443 : 80) || /:\d+$/.test(host) ? '' : `:${port}`
  let fields: [string, string][] = []
  try {
    fields = parseHeaders(headers)
  } catch {
    // The form reports the line when a message is sent.
  }
  return { base: `${protocol === 'HTTPS' ? 'https' : 'http'}://${host}${own}${path === '/' ? '' : path}`, headers: fields }
}

/** Sends the prompt to one model and shows the response while it arrives. */
async function converse(current: Form, model: string, index: 0 | 1, stopped: AbortSignal): Promise<void> {
  const turns = [...threads.value[index].turns, turnOf(current)]
  let answer = noAnswer
  const show = (part: Partial<Answer>): void => {
    answer = { ...answer, ...part }
    const thread = { turns, answer }
    threads.value = index === 0 ? [thread, threads.value[1]] : [threads.value[0], thread]
  }
  pending.value++
  show({})
  const startedAtMs = performance.now()
  let reader = new ReplyReader('')
  try {
    const { host, path } = splitUrl(current.base)
    const headers = [['content-type', 'application/json'], ...parseHeaders(current.headers)]
    const body = JSON.stringify(buildBody(chatOf(current, model, turns)))
    const request = {
      listener: current.listener,
      method: 'POST',
      host,
      path: `${path === '/' ? '' : path}${formats[current.format].path}`,
      headers,
      body,
      timeoutMs: TIMEOUT_MS,
    }
    await sendStream(
      '/api/v1/try/stream',
      request,
      (event, data) => {
        if (event === 'head') {
          const head = data as NonNullable<TryResult['response']>
          reader = new ReplyReader(head.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '')
          show({ status: head.status })
        }
        if (event === 'data') {
          reader.push((data as { text: string }).text)
          const { reply } = reader
          show({ reply, ...(answer.firstMs === undefined && reply.text !== '' && { firstMs: performance.now() - startedAtMs }) })
        }
        if (event === 'end') {
          reader.end()
          const result = data as TryResult
          show({ reply: reader.reply, result, totalMs: performance.now() - startedAtMs, failure: result.error ?? '' })
        }
        if (event === 'failure') show({ failure: String((data as { error: unknown }).error) })
      },
      stopped,
    )
  } catch (error) {
    show({ failure: stopped.aborted ? 'stopped' : error instanceof Error ? error.message : String(error) })
  } finally {
    pending.value--
  }
  if (answer.failure !== '' || answer.status !== 200 || answer.reply.error !== undefined) return
  const done = [...turns, { role: 'assistant', text: answer.reply.text, image: '' } as const]
  const thread = { turns: answer.reply.text === '' ? turns : done, answer }
  threads.value = index === 0 ? [thread, threads.value[1]] : [threads.value[0], thread]
}

interface FormProps {
  readonly form: Form
  readonly onChange: (part: Partial<Form>) => void
}

function Settings({ data, places, form: current, onChange }: FormProps & { readonly data: Overview; readonly places: readonly Place[] }) {
  const model = (index: 0 | 1, value: string): void => onChange({ models: index === 0 ? [value, current.models[1]] : [current.models[0], value] })
  return (
    <Panel title="Request">
      <div class="body stack">
        <div class="row">
          <PlaceFields data={data} places={places} place={current} onChange={onChange} />
          <label>
            Format
            <select value={current.format} onChange={({ currentTarget }) => onChange({ format: currentTarget.value as Format })}>
              {Object.entries(formats).map(([name, { title }]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        </div>
        <div class="row">
          <label class="grow">
            Model
            <input class="mono" value={current.models[0]} spellcheck={false} onInput={({ currentTarget }) => model(0, currentTarget.value)} />
          </label>
          <label class="grow">
            Second model, to compare
            <input class="mono" value={current.models[1]} spellcheck={false} onInput={({ currentTarget }) => model(1, currentTarget.value)} />
          </label>
          <label class="check">
            <input type="checkbox" checked={current.isStreaming} onChange={({ currentTarget }) => onChange({ isStreaming: currentTarget.checked })} />
            Stream
          </label>
        </div>
        <details>
          <summary>Headers, system prompt and tools</summary>
          <div class="split">
            <label>
              Headers, one a line
              <textarea
                rows={3}
                value={current.headers}
                placeholder="authorization: Bearer …"
                spellcheck={false}
                onInput={({ currentTarget }) => onChange({ headers: currentTarget.value })}
              />
            </label>
            <label>
              System prompt
              <textarea rows={3} value={current.system} onInput={({ currentTarget }) => onChange({ system: currentTarget.value })} />
            </label>
          </div>
          <label>
            Tools, as JSON
            <textarea
              rows={3}
              value={current.tools}
              placeholder={'[{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]'}
              spellcheck={false}
              onInput={({ currentTarget }) => onChange({ tools: currentTarget.value })}
            />
          </label>
        </details>
      </div>
    </Panel>
  )
}

function Prompt({ form: current, onChange, onSubmit, onStop }: FormProps & { readonly onSubmit: () => void; readonly onStop: () => void }) {
  const isBusy = pending.value > 0
  return (
    <form
      class="panel prompt"
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
      }}
    >
      <label>
        Message
        <textarea rows={3} required value={current.prompt} onInput={({ currentTarget }) => onChange({ prompt: currentTarget.value })} />
      </label>
      <div class="row">
        <label class="grow">
          Image, an https: or data: URL
          <input class="mono" value={current.image} spellcheck={false} onInput={({ currentTarget }) => onChange({ image: currentTarget.value })} />
        </label>
        <button type="button" class="quiet" disabled={isBusy} onClick={() => (threads.value = [noThread, noThread])}>
          New conversation
        </button>
        {isBusy ? (
          <button type="button" onClick={onStop}>
            Stop
          </button>
        ) : (
          <button type="submit" class="primary">
            Send
          </button>
        )}
      </div>
    </form>
  )
}

function Conversation({ model, thread: { turns, answer } }: { readonly model: string; readonly thread: Thread }) {
  const isDone = turns.at(-1)?.role === 'assistant'
  const isRejected = answer?.status !== undefined && answer.status >= 400
  const shown = answer === undefined || isDone || isRejected ? turns : [...turns, { role: 'assistant', text: answer.reply.text, image: '' } as const]
  return (
    <Panel title={model} aside={answer && <Facts answer={answer} />}>
      <div class="body stack">
        {shown.length === 0 && <Empty title="No message sent yet" />}
        <ol class="turns" aria-live="polite">
          {shown.map(({ role, text, image }, index) => (
            <li key={index} class={`is-${role}`}>
              <span class="who">{role === 'user' ? 'You' : 'Model'}</span>
              <p>{text === '' && role === 'assistant' ? '…' : text}</p>
              {image !== '' && <p class="muted">with an image</p>}
            </li>
          ))}
        </ol>
        {answer?.reply.tools.map((tool, index) => (
          <p key={index} class="mono">
            {tool.name}({tool.arguments})
          </p>
        ))}
        {isRejected && <ErrorBox title={`Status ${answer.status}`} message={answer.reply.error ?? answer.reply.text} />}
        {answer !== undefined && !isRejected && (answer.failure !== '' || answer.reply.error !== undefined) && (
          <ErrorBox title="The response is not complete" message={answer.failure === '' ? (answer.reply.error ?? '') : answer.failure} />
        )}
        {answer?.result?.trace && (
          <details>
            <summary>Steps: route, policies, guards and attempts</summary>
            <Waterfall trace={answer.result.trace} />
          </details>
        )}
      </div>
    </Panel>
  )
}

function Facts({ answer: { status, firstMs, totalMs, reply } }: { readonly answer: Answer }) {
  return (
    <>
      <span>
        {[
          firstMs === undefined ? '' : `first ${formatMs(firstMs)}`,
          totalMs === undefined ? '' : `end ${formatMs(totalMs)}`,
          reply.inputTokens === undefined ? '' : `${formatNumber(reply.inputTokens)} in`,
          reply.outputTokens === undefined ? '' : `${formatNumber(reply.outputTokens)} out`,
        ]
          .filter(Boolean)
          .join(' · ')}
      </span>
      {status !== undefined && <Badge tone={toneOfStatus(status)}>{status}</Badge>}
    </>
  )
}
