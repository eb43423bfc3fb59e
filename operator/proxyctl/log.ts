import { openAdmin } from './admin.ts'
import { UsageError } from './output.ts'
import type { Command } from './types.ts'

/** Shows or sets the log level of a data plane. */
export const runLog: Command = async (invocation) => {
  const [word, level, ...rest] = invocation.args
  if (word !== 'level' || rest.length > 0) throw new UsageError('log takes: level [LEVEL]')
  const admin = await openAdmin(invocation)
  const { status, body } = await admin.ask('POST', level === undefined ? '/logging' : `/logging?level=${encodeURIComponent(level)}`)
  if (status !== 200) throw new Error(`${admin.name}: ${body.trim()}`)
  const current = body.trim().replace(/^current log level is /, '')
  invocation.output.print({ level: current }, () => [current])
  return 0
}
