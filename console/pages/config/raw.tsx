import { useState } from 'preact/hooks'
import { get } from '../../api/client.ts'
import { Code } from '../../ui/code.tsx'
import { Panel } from '../../ui/panel.tsx'
import { ErrorBox } from '../../ui/states.tsx'

/** The config in force as JSON. Read on demand: it may be large. */
export function RawConfig({ version }: { readonly version: number }) {
  const [shown, setShown] = useState<{ readonly version: number; readonly text: string }>()
  const [error, setError] = useState<string>()
  const read = (): void =>
    void get<unknown>('/api/v1/config').then(
      (value) => {
        setError(undefined)
        setShown({ version, text: JSON.stringify(value, undefined, 2) })
      },
      (failure: Error) => setError(failure.message),
    )
  const isOld = shown !== undefined && shown.version !== version
  return (
    <Panel
      title="Config in force"
      aside={
        <button type="button" class="quiet" onClick={read}>
          {shown === undefined ? 'Show' : isOld ? 'A new version is in force: read again' : 'Read again'}
        </button>
      }
    >
      {error !== undefined && <ErrorBox title="The config cannot be read" message={error} />}
      {shown === undefined ? (
        <p class="body muted">As JSON, with secrets redacted: what GET /api/v1/config returns.</p>
      ) : (
        <div class="body">
          <Code label="Config in force" value={shown.text} />
        </div>
      )}
    </Panel>
  )
}
