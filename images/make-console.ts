import { join } from 'node:path'
import { updateConsole } from './console.ts'

/** `make console`: writes dist/console, which a data plane of the checkout serves. */
const isNew = await updateConsole(join(import.meta.dirname, '../dist/console'))
process.stdout.write(`dist/console${isNew ? '' : ' is up to date'}\n`)
