import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { EvaluateResult, ExpressionCatalog } from '#api/management/expressions.ts'
import { get, send } from '../../api/client.ts'
import { Code, type CodeHandle } from '../../ui/code.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { ErrorBox, Loading } from '../../ui/states.tsx'
import { Capture } from './capture.tsx'
import { complete, listEntries } from './completion.ts'
import { ManifestPanel } from './manifest-panel.tsx'
import { Reference } from './reference.tsx'
import { Result } from './result.tsx'
import { defaultSample, toSample } from './sample.ts'

const DELAY_MS = 200
const phases = [
  ['request', 'request: policies before the request is sent'],
  ['response', 'response: policies once there is a response'],
  ['log', 'log: access logs, traces and metrics'],
  ['backend', 'backend: policies of the selected backend'],
  ['llm', 'llm: transformations of LLM requests'],
  ['network', 'network: connections'],
  ['resource', 'resource: attributes of the process'],
] as const

export function ExpressionsPage() {
  const [expression, setExpression] = useState('request.headers["x-user"] == jwt.sub &&\n  json(request.body).items.exists(i, i.price > 3)')
  const [phase, setPhase] = useState('request')
  const [sample, setSample] = useState(() => JSON.stringify(defaultSample, undefined, 2))
  const [before, setBefore] = useState('')
  const editor = useRef<CodeHandle>(null)
  const { result, error } = useEvaluation(expression, phase, sample)
  const catalog = useCatalog()
  const entries = useMemo(() => (catalog === undefined ? [] : listEntries(catalog, phase)), [catalog, phase])
  const { word, found } = complete(entries, before)
  const wrong = useMemo(
    () => [...(result?.problems ?? []), ...(result?.error ? [result.error] : [])].map(({ offset }) => ({ from: offset, to: offset + 1 })),
    [result],
  )
  const insert = (text: string, length: number): void => editor.current?.insert(text, length)
  return (
    <>
      <PageHead title="Expressions">
        <span class="muted">evaluated in the gateway with a sample request; nothing is sent</span>
        <span class="grow" />
        <label>
          Phase
          <select value={phase} onChange={(event) => setPhase(event.currentTarget.value)}>
            {phases.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
      </PageHead>
      <Panel title="Expression" class="expression">
        <div class="body stack">
          <Code
            label="Expression"
            value={expression}
            onChange={setExpression}
            onCursor={setBefore}
            onReady={(handle) => (editor.current = handle)}
            wrong={wrong}
            isJson={false}
          />
          <div class="completion" role="group" aria-label="Completion">
            {found.map(({ text, label, description }) => (
              <button key={label} type="button" class="quiet mono" title={description} onClick={() => insert(text, word.length)}>
                {label}
              </button>
            ))}
            {found.length === 0 && <span class="muted">Type a name for completion.</span>}
          </div>
        </div>
      </Panel>
      <div class="split">
        <div>
          {error !== undefined && <ErrorBox title="The sample cannot be used" message={error} />}
          {result === undefined ? error === undefined && <Loading /> : <Result result={result} />}
        </div>
        <Panel title="Sample" aside={<Capture onCapture={(record) => setSample(JSON.stringify(toSample(record), undefined, 2))} />}>
          <div class="body">
            <Code label="Sample" value={sample} onChange={setSample} />
          </div>
        </Panel>
      </div>
      <ManifestPanel phase={phase} expression={expression} />
      <Reference entries={entries} onInsert={(text) => insert(text, 0)} />
    </>
  )
}

function useCatalog(): ExpressionCatalog | undefined {
  const [catalog, setCatalog] = useState<ExpressionCatalog>()
  useEffect(() => void get<ExpressionCatalog>('/api/v1/expressions/catalog').then(setCatalog, () => undefined), [])
  return catalog
}

/** Evaluates when the input did not change for a moment. */
function useEvaluation(expression: string, phase: string, sample: string): { result: EvaluateResult | undefined; error: string | undefined } {
  const [result, setResult] = useState<EvaluateResult>()
  const [error, setError] = useState<string>()
  useEffect(() => {
    const stop = new AbortController()
    const evaluate = async (): Promise<void> => {
      const body = { expression, phase, sample: JSON.parse(sample) as unknown }
      setResult(await send<EvaluateResult>('POST', '/api/v1/expressions/evaluate', body, stop.signal))
      setError(undefined)
    }
    const timer = setTimeout(
      () =>
        void evaluate().catch((failure: Error) => {
          if (stop.signal.aborted) return
          setResult(undefined)
          setError(failure.message)
        }),
      DELAY_MS,
    )
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [expression, phase, sample])
  return { result, error }
}
