import { useEffect, useState } from 'preact/hooks'
import type { RequestBatch, RequestRecord } from '#api/management/requests.ts'
import { get } from '../../api/client.ts'

const INTERVAL_MS = 500

/** Waits for the next request through the gateway. */
export function Capture({ onCapture }: { readonly onCapture: (record: RequestRecord) => void }) {
  const [isWaiting, setWaiting] = useState(false)
  const [error, setError] = useState<string>()
  useEffect(() => {
    if (!isWaiting) return undefined
    const query = new URLSearchParams({ tail: `expressions-${crypto.randomUUID()}`, limit: '1' })
    const stop = new AbortController()
    const read = async (): Promise<void> => {
      const { records } = await get<RequestBatch>(`/api/v1/requests?${query}`, stop.signal)
      const [record] = records
      if (record === undefined || stop.signal.aborted) return
      setWaiting(false)
      onCapture(record)
    }
    const poll = (): void =>
      void read().catch((failure: Error) => {
        if (stop.signal.aborted) return
        setWaiting(false)
        setError(failure.message)
      })
    setError(undefined)
    poll()
    const timer = setInterval(poll, INTERVAL_MS)
    return () => {
      clearInterval(timer)
      stop.abort()
    }
  }, [isWaiting])
  return (
    <>
      <span role="status">{error ?? (isWaiting ? 'Waiting for a request…' : '')}</span>
      <button type="button" class="quiet" onClick={() => setWaiting(!isWaiting)}>
        {isWaiting ? 'Stop waiting' : 'Capture the next request'}
      </button>
    </>
  )
}
