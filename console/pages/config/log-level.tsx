import { useEffect, useState } from 'preact/hooks'
import { get, send } from '../../api/client.ts'

interface Level {
  readonly level: string
}

/** Shows and sets the level of the log, until the process ends. */
export function LogLevel() {
  const [level, setLevel] = useState('')
  const [note, setNote] = useState<string>()
  useEffect(() => {
    get<Level>('/api/v1/log-level').then(
      (value) => setLevel(value.level),
      (error: Error) => setNote(error.message),
    )
  }, [])
  const apply = (event: Event): void => {
    event.preventDefault()
    send<Level>('PUT', '/api/v1/log-level', { level }).then(
      (value) => {
        setLevel(value.level)
        setNote('set')
      },
      (error: Error) => setNote(error.message),
    )
  }
  return (
    <form class="row" onSubmit={apply}>
      <label>
        Log level
        <input class="mono" value={level} onInput={(event) => setLevel(event.currentTarget.value)} placeholder="info,upstream=debug" />
      </label>
      <button type="submit">Set</button>
      <span role="status" class="muted" hidden={note === ''}>
        {note}
      </span>
    </form>
  )
}
