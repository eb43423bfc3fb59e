import type { Series } from '../observe/telemetry/metrics/registry.ts'

interface Connection {
  onConnected(): void
  onDisconnected(cause: string): void
}

/** Shows in a metric and in the log whether a service is connected. Of failures in a row only the first is logged: attempts follow each other quickly. */
export function showConnection({ connected, onConnected, onDisconnected }: Connection & { readonly connected: Series | undefined }): Connection {
  let wasConnected: boolean | undefined
  return {
    onConnected() {
      if (connected !== undefined) connected.value = 1
      wasConnected = true
      onConnected()
    },
    onDisconnected(cause) {
      if (connected !== undefined) connected.value = 0
      if (wasConnected !== false) onDisconnected(cause)
      wasConnected = false
    },
  }
}
