import { signal } from '@preact/signals'
import type { TryResult } from '#api/management/requests.ts'
import type { RouteSummary } from '#api/management/routes.ts'
import { send } from '../../api/client.ts'
import { parseHeaders, splitUrl } from '../../api/draft.ts'
import { overview } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { Badge, PageHead, Panel, toneOfStatus } from '../../ui/panel.tsx'
import { linkTo } from '../../ui/router.ts'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { formats, ReplyReader } from './chat.ts'
import { cutAtHits, listFindings, toOriginal, type Finding } from './findings.ts'
import { findPlaces, PlaceFields, type Place } from './places.tsx'

interface Form extends Place {
  readonly model: string
  readonly headers: string
  readonly text: string
}

/** A text that was sent, and what became of it. */
interface Tested {
  readonly text: string
  readonly result: TryResult
}

const form = signal<Form | undefined>(undefined)
const tested = signal<Tested | undefined>(undefined)
const failure = signal('')
const isSending = signal(false)

const tones = { passed: 'good', masked: 'warn', rejected: 'bad' } as const

/** Sends a text through the prompt guards of a route, and shows which guard did what where. */
export function GuardsView() {
  const data = overview.value
  const { value: routes } = useResource<{ readonly routes: readonly RouteSummary[] }>('/api/v1/routes')
  if (data === undefined || routes === undefined) return <Loading />
  const places = findPlaces(data, routes.routes)
  const [first = { listener: data.listeners[0]?.key ?? '', base: 'localhost/v1' }] = places
  const current = form.value ?? { ...first, model: 'gpt-4o', headers: '', text: '' }
  const change = (part: Partial<Form>): void => void (form.value = { ...current, ...part })
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumbs">
        <a href={linkTo(['llm'])}>LLM</a>
      </nav>
      <PageHead title="Guards">
        <p class="muted">Sends a text as a chat completion with at most one output token. A text that no guard rejects reaches the provider.</p>
      </PageHead>
      <form
        class="panel prompt"
        onSubmit={(event) => {
          event.preventDefault()
          void submit(current)
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
        }}
      >
        <div class="row">
          <PlaceFields data={data} places={places} place={current} onChange={change} />
          <label>
            Model
            <input class="mono" value={current.model} spellcheck={false} onInput={({ currentTarget }) => change({ model: currentTarget.value })} />
          </label>
        </div>
        <label>
          Text
          <textarea
            rows={5}
            required
            value={current.text}
            placeholder="My number is 123-45-6789."
            onInput={({ currentTarget }) => change({ text: currentTarget.value })}
          />
        </label>
        <div class="row">
          <label class="grow">
            Headers, one a line
            <textarea
              rows={1}
              value={current.headers}
              placeholder="authorization: Bearer …"
              spellcheck={false}
              onInput={({ currentTarget }) => change({ headers: currentTarget.value })}
            />
          </label>
          <button type="submit" class="primary" disabled={isSending.value}>
            {isSending.value ? 'Testing…' : 'Test'}
          </button>
        </div>
      </form>
      {failure.value !== '' && <ErrorBox title="The text was not sent" message={failure.value} />}
      {tested.value && <Outcome tested={tested.value} />}
    </>
  )
}

async function submit({ listener, base, model, headers, text }: Form): Promise<void> {
  failure.value = ''
  isSending.value = true
  try {
    const { host, path } = splitUrl(base)
    const request = {
      listener,
      method: 'POST',
      host,
      path: `${path === '/' ? '' : path}${formats.completions.path}`,
      headers: [['content-type', 'application/json'], ...parseHeaders(headers)],
      body: JSON.stringify({ model, max_tokens: 1, messages: [{ role: 'user', content: text }] }),
    }
    tested.value = { text, result: await send<TryResult>('POST', '/api/v1/try', request) }
  } catch (error) {
    tested.value = undefined
    failure.value = error instanceof Error ? error.message : String(error)
  } finally {
    isSending.value = false
  }
}

function Outcome({ tested: { text, result } }: { readonly tested: Tested }) {
  const { response, error, trace } = result
  const findings = listFindings(trace?.steps ?? [])
  const ofText = toOriginal(findings.filter(({ phase }) => phase === 'Request'))
  const reader = new ReplyReader('')
  reader.push(response?.body ?? '')
  reader.end()
  return (
    <div role="region" aria-label="Result" class="result">
      {error !== null && <ErrorBox title="There is no response" message={error} />}
      <Panel title="Guards" aside={response && <Badge tone={toneOfStatus(response.status)}>{response.status}</Badge>}>
        {findings.length === 0 ? <Empty title="No prompt guard of the route ran" /> : <Findings findings={findings} />}
      </Panel>
      <Panel title="Text">
        <p class="body checked">
          {cutAtHits(text, ofText).map((piece, index) =>
            piece.label === undefined ? (
              <span key={index}>{piece.text}</span>
            ) : (
              <mark key={index} title={piece.label}>
                {piece.text}
              </mark>
            ),
          )}
        </p>
      </Panel>
      {response && (
        <Panel title="Response">
          <p class="body checked">{reader.reply.error ?? reader.reply.text}</p>
        </Panel>
      )}
    </div>
  )
}

const Findings = ({ findings }: { readonly findings: readonly Finding[] }) => (
  <Scroll label="Decisions of guards">
    <table class="findings">
      <thead>
        <tr>
          <th>Guard</th>
          <th>Phase</th>
          <th>Decision</th>
          <th>Where</th>
        </tr>
      </thead>
      <tbody>
        {findings.map(({ guard, phase, decision, hits }, index) => (
          <tr key={index}>
            <td class="mono">{guard}</td>
            <td>{phase}</td>
            <td>
              <Badge tone={tones[decision]}>{decision}</Badge>
            </td>
            <td>{hits.length === 0 ? '–' : hits.map(({ label, start, end, text }) => `${label} at ${start} to ${end} of text ${text}`).join(', ')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
)
