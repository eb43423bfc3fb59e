import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { TryRequest, TryResult } from '#api/management/requests.ts'
import type { RouteSummary } from '#api/management/routes.ts'
import { send } from '../../api/client.ts'
import { draft, emptyDraft, parseHeaders, splitUrl, type Draft } from '../../api/draft.ts'
import { overview } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { linkTo } from '../../ui/router.ts'
import { formatMs } from '../../ui/format.ts'
import { Badge, PageHead, Panel, toneOfStatus } from '../../ui/panel.tsx'
import { Empty, ErrorBox } from '../../ui/states.tsx'
import { Waterfall } from './waterfall.tsx'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const isSending = signal(false)
const result = signal<TryResult | undefined>(undefined)
const failure = signal('')

async function submit(listener: string): Promise<void> {
  failure.value = ''
  isSending.value = true
  try {
    result.value = await send<TryResult>('POST', '/api/v1/try', toRequest(draft.value, listener))
  } catch (error) {
    result.value = undefined
    failure.value = error instanceof Error ? error.message : String(error)
  } finally {
    isSending.value = false
  }
}

function toRequest({ method, url, headers, body }: Draft, listener: string): Partial<TryRequest> {
  const { host, path } = splitUrl(url)
  if (host === '') throw new Error('URL: has no host; write shop.example/path')
  return { listener, method, host, path, headers: parseHeaders(headers), body }
}

const change = (part: Partial<Draft>): void => {
  draft.value = { ...draft.value, ...part }
}

export function TryView() {
  useEffect(() => {
    // The result of another request would be misread as that of this one.
    result.value = undefined
    failure.value = ''
  }, [])
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumbs">
        <a href={linkTo(['routes'])}>Routes</a>
      </nav>
      <PageHead title="Try it">
        <p class="muted">Sends a request through the gateway and shows each step. The upstream receives it like any other request.</p>
      </PageHead>
      <Form />
      {failure.value !== '' && <ErrorBox title="The request was not sent" message={failure.value} />}
      {result.value ? <Result result={result.value} /> : failure.value === '' && <Hint />}
    </>
  )
}

function Form() {
  const { value: routes } = useResource<{ readonly routes: readonly RouteSummary[] }>('/api/v1/routes')
  const listeners = (overview.value?.listeners ?? []).filter(({ protocol }) => protocol === 'HTTP' || protocol === 'HTTPS')
  const hosts = [...new Set(routes?.routes.flatMap(({ hostnames }) => hostnames.map((name) => name.replace(/^\*\./, 'www.'))))]
  const { method, url, headers, body, note } = draft.value
  const listener = listeners.find(({ key }) => key === draft.value.listener)?.key ?? listeners[0]?.key ?? ''
  return (
    <form
      class="panel try"
      onSubmit={(event) => {
        event.preventDefault()
        void submit(listener)
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
      }}
    >
      {note !== '' && (
        <p class="note">
          {note}{' '}
          <button type="button" class="quiet" onClick={() => (draft.value = emptyDraft)}>
            New request
          </button>
        </p>
      )}
      <div class="row">
        <label>
          Method
          <select value={method} onChange={({ currentTarget }) => change({ method: currentTarget.value })}>
            {[...new Set([...METHODS, method])].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="grow">
          URL
          <input
            class="mono"
            data-search
            required
            list="hosts"
            placeholder="shop.example/cart?id=1"
            value={url}
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => change({ url: currentTarget.value })}
          />
          <datalist id="hosts">
            {hosts.map((host) => (
              <option key={host} value={host} />
            ))}
          </datalist>
        </label>
        <label>
          Listener
          <select value={listener} onChange={({ currentTarget }) => change({ listener: currentTarget.value })}>
            {listeners.map(({ key, protocol, port }) => (
              <option key={key} value={key}>{`${key} (${protocol} ${port})`}</option>
            ))}
          </select>
        </label>
        <button type="submit" class="primary" disabled={isSending.value || listener === ''}>
          {isSending.value ? 'Sending…' : 'Send'}
        </button>
      </div>
      <div class="split">
        <label>
          Headers, one a line
          <textarea
            rows={4}
            value={headers}
            placeholder="x-team: finance"
            spellcheck={false}
            onInput={({ currentTarget }) => change({ headers: currentTarget.value })}
          />
        </label>
        <label>
          Body
          <textarea
            rows={4}
            value={body}
            placeholder={'{"cart": 1}'}
            spellcheck={false}
            onInput={({ currentTarget }) => change({ body: currentTarget.value })}
          />
        </label>
      </div>
    </form>
  )
}

const Hint = () => (
  <Empty title="No request sent yet">
    <p>
      Write a URL and press Send, or <kbd>Ctrl</kbd> <kbd>Enter</kbd>. The result shows the route that matched, each policy with its decision and time, the
      values of expressions, and each attempt on an endpoint.
    </p>
  </Empty>
)

function Result({ result: { response, error, trace } }: { readonly result: TryResult }) {
  return (
    <div role="region" aria-label="Result" class="result">
      {error !== null && <ErrorBox title="There is no response" message={error} />}
      {trace === null ? (
        <p class="notice">There is no trace: the request did not reach a listener.</p>
      ) : (
        <Panel
          title="Steps"
          aside={
            <>
              {trace.reason !== null && <span>{trace.reason}</span>}
              <Badge tone={toneOfStatus(trace.status)}>{trace.status}</Badge>
            </>
          }
        >
          {trace.error !== null && <p class="body is-bad">{trace.error}</p>}
          <Waterfall trace={trace} />
        </Panel>
      )}
      {response && <Response response={response} />}
    </div>
  )
}

function Response({ response }: { readonly response: NonNullable<TryResult['response']> }) {
  const { status, headers, encoding, isTruncated, headMs, durationMs } = response
  return (
    <Panel
      title="Response"
      aside={
        <>
          <span>
            head {formatMs(headMs)} · end {formatMs(durationMs)}
          </span>
          <Badge tone={toneOfStatus(status)}>{status}</Badge>
        </>
      }
    >
      <div class="split response">
        <div>
          <h3>Headers</h3>
          <dl class="pairs headers">
            {headers.map(([name, value], index) => (
              <div key={index}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </div>
        <div>
          <h3>
            Body <span class="muted">{[encoding === 'base64' ? 'not text: base64' : '', isTruncated ? 'cut' : ''].filter(Boolean).join(', ')}</span>
          </h3>
          <pre class="text" tabIndex={0} aria-label="Body">
            {prettyBody(response)}
          </pre>
        </div>
      </div>
    </Panel>
  )
}

/** JSON with indentation, other text as it is. */
function prettyBody({ body, encoding, isTruncated }: NonNullable<TryResult['response']>): string {
  if (body === '') return '(empty)'
  if (encoding === 'base64' || isTruncated) return body
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
