import { openAdmin } from './admin.ts'
import { CommandError, UsageError } from './output.ts'
import type { Command } from './types.ts'

/** Shows or sets the log level of a data plane. */
export const runLog: Command = async (invocation) => {
  const [level, ...rest] = invocation.args
  if (rest.length > 0) throw new UsageError('log level takes at most one level, such as debug or routing=debug,upstream=trace')
  const admin = await openAdmin(invocation)
  const { status, body } = await admin.ask('POST', level === undefined ? '/logging' : `/logging?level=${encodeURIComponent(level)}`)
  if (status !== 200) throw new CommandError('PX6004', `${admin.name}: ${body.trim()}`)
  const current = body.trim().replace(/^current log level is /, '')
  invocation.output.print({ level: current }, () => [current])
  return 0
}
