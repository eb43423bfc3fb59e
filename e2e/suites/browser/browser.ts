import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'

/** Chromium of Debian, which `.ci/packages` installs. */
const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** Timeout that only a browser that hangs exceeds, even on a loaded machine. */
const SLOW_MS = 110_000
/** Options that disable Chromium's own requests. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Starts a browser with an empty profile. */
export async function startBrowser(): Promise<{ readonly context: BrowserContext; close(): Promise<void> }> {
  const profile = await mkdtemp(join(tmpdir(), 'browser-'))
  const context = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, headless: true, args: QUIET, timeout: SLOW_MS })
  context.setDefaultTimeout(SLOW_MS)
  return {
    context,
    close: async () => {
      await context.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
