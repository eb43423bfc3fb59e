import { setTimeout as sleep } from 'node:timers/promises'

/** Asks again every few milliseconds until the answer is true; an exception counts as false. Returns whether it became true in time. */
export async function isTrueWithin(timeoutMs: number, ask: () => boolean | Promise<boolean>, everyMs = 20): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      if (await ask()) return true
    } catch {
      // Not yet.
    }
    if (Date.now() >= deadline) return false
    await sleep(everyMs)
  }
}

/** As `isTrueWithin`, but throws, naming what was waited for. */
export async function waitUntil(what: string, ask: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  if (!(await isTrueWithin(timeoutMs, ask))) throw new Error(`not within ${timeoutMs} ms: ${what}`)
}

/** Resolves once the condition holds, however slow the machine; after 60 s it throws, with the condition's own text and what `told` adds. */
export async function until(ask: () => boolean | Promise<boolean>, told: () => string = () => ''): Promise<void> {
  if (!(await isTrueWithin(60_000, ask, 5))) throw new Error(`not within 60 s: ${ask.toString()}\n${told()}`)
}
