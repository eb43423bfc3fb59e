import { useCallback, useEffect, useState } from 'preact/hooks'
import { ManagementError, get } from './client.ts'
import { poll } from './visible.ts'

export interface Resource<T> {
  /** The last response; stays while the resource is read again. */
  readonly value: T | undefined
  /** Why the last read failed; undefined after a read that succeeded. */
  readonly error: ManagementError | undefined
}

/** Reads a resource of the management API, and again in intervals. A path of undefined reads nothing. */
export function useResource<T>(path: string | undefined, intervalMs?: number): Resource<T> {
  const [state, setState] = useState<Resource<T> & { readonly path?: string | undefined }>({ value: undefined, error: undefined })
  const read = useCallback(
    (signal: AbortSignal): undefined => {
      if (path === undefined) return undefined
      get<T>(path, signal).then(
        (value) => setState({ path, value, error: undefined }),
        (error: unknown) => {
          if (signal.aborted) return
          const failure = error instanceof ManagementError ? error : new ManagementError(0, String(error))
          setState((last) => ({ path, value: last.path === path ? last.value : undefined, error: failure }))
        },
      )
      return undefined
    },
    [path],
  )
  useEffect(() => {
    const abort = new AbortController()
    const stop = intervalMs === undefined ? read(abort.signal) : poll(() => read(abort.signal), intervalMs)
    return () => {
      stop?.()
      abort.abort()
    }
  }, [read, intervalMs])
  // The response to another path must not be shown for this one.
  return state.path === path ? state : { value: undefined, error: undefined }
}
