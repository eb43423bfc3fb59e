import { whileVisible } from './visible.ts'

/** An error response of the management API, or a failed connection (status 0). */
export class ManagementError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** GET of a resource of the management API. Rejects with an ManagementError. */
export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>('GET', path, undefined, signal)
}

/** Sends JSON to the management API. Rejects with an ManagementError. */
export function send<T>(method: 'POST' | 'PUT', path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return request<T>(method, path, body, signal)
}

async function request<T>(method: string, path: string, body: unknown, signal: AbortSignal | undefined): Promise<T> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      ...(signal && { signal }),
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new ManagementError(0, 'the gateway cannot be reached')
  }
  const text = await response.text()
  if (!response.ok) throw new ManagementError(response.status, messageOf(text) ?? `status ${response.status}`)
  return JSON.parse(text) as T
}

function messageOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

/**
 * Sends JSON and calls `onEvent` for each server-sent event of the response. Resolves at its end; rejects with a ManagementError, or with the error of `signal`.
 */
export async function sendStream(path: string, body: unknown, onEvent: (event: string, data: unknown) => void, signal: AbortSignal): Promise<void> {
  const response = await fetch(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' }, signal }).catch(
    (error: unknown) => {
      if (signal.aborted) throw error
      throw new ManagementError(0, 'the gateway cannot be reached')
    },
  )
  if (!response.ok || response.body === null) throw new ManagementError(response.status, messageOf(await response.text()) ?? `status ${response.status}`)
  let rest = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const lines = part.split('\n')
      const event =
        lines
          .find((line) => line.startsWith('event:'))
          ?.slice(6)
          .trim() ?? 'message'
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5))
      if (data.length > 0) onEvent(event, JSON.parse(data.join('\n')))
    }
  }
}

export interface StreamHandlers<T> {
  readonly onValue: (value: T) => void
  /** The API rejected the stream, or it failed; it is not opened again. */
  readonly onFailure: (message: string) => void
  /** Whether the stream is connected. The browser reconnects by itself. */
  readonly onState?: (isOpen: boolean) => void
}

/** Opens a stream of server-sent events, while the tab is visible. Returns a function that closes it. */
export function stream<T>(path: string, event: string, handlers: StreamHandlers<T>): () => void {
  let hasFailed = false
  const onFailure = (message: string): void => {
    hasFailed = true
    handlers.onFailure(message)
  }
  return whileVisible(() => (hasFailed ? () => undefined : open(path, event, { ...handlers, onFailure })))
}

function open<T>(path: string, event: string, { onValue, onFailure, onState }: StreamHandlers<T>): () => void {
  const source = new EventSource(path)
  source.addEventListener('open', () => onState?.(true))
  source.addEventListener('error', () => {
    onState?.(false)
    // The browser does not reconnect after an error status. Its body says why.
    if (source.readyState === EventSource.CLOSED) get(path).then(undefined, (error: Error) => onFailure(error.message))
  })
  source.addEventListener(event, ({ data }: MessageEvent<string>) => onValue(JSON.parse(data) as T))
  source.addEventListener('failure', ({ data }: MessageEvent<string>) => {
    source.close()
    onFailure(messageOf(data) ?? 'the stream failed')
  })
  return () => source.close()
}
