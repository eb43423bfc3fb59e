import { setTimeout as sleep } from 'node:timers/promises'

/** Polls a condition until it is true; an exception counts as false. Returns whether it became true within `timeoutMs`. */
export async function isTrueWithin(timeoutMs: number, condition: () => boolean | Promise<boolean>, everyMs = 20): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      if (await condition()) return true
    } catch {
      // Not yet.
    }
    if (Date.now() >= deadline) return false
    await sleep(everyMs)
  }
}

/** Like `isTrueWithin`, but throws an error that contains `what`. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  if (!(await isTrueWithin(timeoutMs, condition))) throw new Error(`not within ${timeoutMs} ms: ${what}`)
}

/** Waits until the condition is true. Throws after 60 s, with the source text of the condition and the result of `describe`. */
export async function until(condition: () => boolean | Promise<boolean>, describe: () => string = () => ''): Promise<void> {
  if (!(await isTrueWithin(60_000, condition, 5))) throw new Error(`not within 60 s: ${condition.toString()}\n${describe()}`)
}
