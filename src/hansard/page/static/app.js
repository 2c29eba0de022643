// @ts-check
/** The page begins here. */

import { Page } from "./shell/page.js";
import { apply } from "./shell/theme.js";

apply();
new Page(document.body).start();
