import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Overview } from '#api/management/overview.ts'
import type { Stats, StatsRow } from '#api/management/stats.ts'
import { get, stream } from './client.ts'
import { poll } from './visible.ts'

/** How often the graph and its problems are read again, milliseconds. The numbers on it come from the stream. */
const OVERVIEW_INTERVAL_MS = 4000

/** Whether the console receives data. Undefined before the first response. */
export const isConnected = signal<boolean | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
export const stats = signal<Stats | undefined>(undefined)

let users = 0
let stop: (() => void) | undefined

/** Keeps `overview` and `stats` up to date while a component is mounted. */
export function useLive(): void {
  useEffect(() => {
    if (users++ === 0) stop = start()
    return () => {
      if (--users > 0) return
      stop?.()
      stop = undefined
    }
  }, [])
}

function start(): () => void {
  const read = async (): Promise<void> => {
    try {
      const next = await get<Overview>('/api/v1/overview')
      overview.value = next
      stats.value ??= next.stats
      isConnected.value = true
    } catch {
      isConnected.value = false
    }
  }
  const stopReading = poll(() => void read(), OVERVIEW_INTERVAL_MS)
  const close = stream<Stats>('/api/v1/stats/stream', 'stats', {
    onValue: (value) => (stats.value = value),
    onFailure: () => (isConnected.value = false),
  })
  return () => {
    stopReading()
    close()
  }
}

/** The numbers of a node: `total`, `listener <key>`, `route <namespace>/<name>`, `backend <key>`. */
export function rowOf(key: string): StatsRow | undefined {
  return stats.value?.rows.find((row) => row.key === key)
}
