import { useState } from 'preact/hooks'
import type { EditPreview, EditRequest, EditResult, EditState } from '#api/management/edits.ts'
import { ManagementError, send } from '../../api/client.ts'
import { ErrorBox } from '../../ui/states.tsx'

export type Change = EditRequest['changes'][number]

interface ChangeButtonsProps {
  readonly state: EditState
  /** Undefined: there is nothing to change yet. */
  readonly change: Change | undefined
  /** The change as a key: what was previewed is written only if it is the same. */
  readonly onResult: (result: EditResult) => void
}

interface Shown {
  readonly key: string
  readonly preview: EditPreview
}

/** Shows the difference of a change, and writes what was shown with a second click. */
export function ChangeButtons({ state, change, onResult }: ChangeButtonsProps) {
  const [shown, setShown] = useState<Shown>()
  const [error, setError] = useState<ManagementError>()
  const [isBusy, setBusy] = useState(false)
  const key = JSON.stringify(change)
  const current = shown?.key === key ? shown.preview : undefined
  const isValid = current !== undefined && current.problems.length === 0 && current.diff.length > 0
  const run = async (what: 'preview' | 'apply', use: (result: EditResult) => void): Promise<void> => {
    if (change === undefined) return
    setBusy(true)
    setError(undefined)
    try {
      use(await send<EditResult>('POST', `/api/v1/edits/${what}`, { revision: state.revision, changes: [change] }))
    } catch (failure) {
      setError(failure instanceof ManagementError ? failure : new ManagementError(0, String(failure)))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div class="stack">
      <div class="row">
        <button type="button" disabled={change === undefined || isBusy} onClick={() => void run('preview', (preview) => setShown({ key, preview }))}>
          Show difference
        </button>
        <button type="button" class="primary" disabled={!isValid || isBusy} onClick={() => void run('apply', onResult)}>
          Write {state.target}
        </button>
      </div>
      {error !== undefined && <ErrorBox title={error.status === 409 ? 'Nothing was written' : 'The change was rejected'} message={error.message} />}
      {current !== undefined && <Preview preview={current} />}
    </div>
  )
}

function Preview({ preview: { diff, problems, warnings } }: { readonly preview: EditPreview }) {
  return (
    <>
      {problems.length > 0 && (
        <div class="notice is-error" role="alert">
          <strong>The change is invalid</strong>
          {problems.map((problem) => (
            <p key={problem}>{problem}</p>
          ))}
        </div>
      )}
      {warnings.length > 0 && (
        <div class="notice is-warn" role="status">
          <strong>Accepted, but it cannot work</strong>
          {warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </div>
      )}
      {diff.length === 0 ? (
        problems.length === 0 && <p class="muted">Nothing changes.</p>
      ) : (
        <pre class="value lines" tabIndex={0} role="region" aria-label="Difference">
          {diff.map(({ kind, text }, index) => (
            <span key={index} class={`is-${kind}`}>
              {kind === 'gap' ? `⋯ ${text} lines` : `${{ same: ' ', added: '+', removed: '-' }[kind]} ${text}`}
              {'\n'}
            </span>
          ))}
        </pre>
      )}
    </>
  )
}
