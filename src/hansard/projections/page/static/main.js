// @ts-check
/** The page begins here. */

import { Page } from "./shell/app.js";
import { apply } from "./shell/theme.js";

apply();
new Page(document.body).start();
