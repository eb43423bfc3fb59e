import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderReadmes } from './readmes.ts'
import { root } from '../docs/tree.ts'
import { readTable } from './table.ts'

// Writes the `May import` line of each README from docs/adr/house.json; `make generate` runs it.
for (const { path, text, expected } of renderReadmes(readTable())) if (text !== expected) writeFileSync(join(root, path), expected)
