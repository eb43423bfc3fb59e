/**
 * Runs `start` while the tab is visible, and what it returned when the tab is hidden: a tab in the background costs the gateway nothing.
 * Returns a function that ends both.
 */
export function whileVisible(start: () => () => void): () => void {
  let stop: (() => void) | undefined
  const update = (): void => {
    if (document.hidden) {
      stop?.()
      stop = undefined
    } else stop ??= start()
  }
  document.addEventListener('visibilitychange', update)
  update()
  return () => {
    document.removeEventListener('visibilitychange', update)
    stop?.()
  }
}

/** Calls `read` at once and in intervals while the tab is visible. Returns a function that ends it. */
export const poll = (read: () => void, intervalMs: number): (() => void) =>
  whileVisible(() => {
    read()
    const timer = setInterval(read, intervalMs)
    return () => clearInterval(timer)
  })
